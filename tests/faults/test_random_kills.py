"""Kills at random moments: nothing lost, nothing corrupt, nothing run twice at the same time.

A few kills by default. The full test:

    MAMUSHI_KILLS=100 pytest tests/faults/test_random_kills.py -s

``MAMUSHI_KILLS_SEED`` chooses other moments.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from safetensors import safe_open

from tests.support import small_grid as grid
from tests.support.audit import Audit, commands
from tests.support.made import Made
from tests.support.workflow import ROOT, SNAKEMAKE, environment

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MAMUSHI_KILLS", "4"))
SEED = int(os.environ.get("MAMUSHI_KILLS_SEED", "0"))
FULL = KILLS >= 20

PATIENCE = 300.0 if not FULL else 900.0
"""Seconds after which something hangs that was asked to end."""


def say(*words: object) -> None:
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """The workflow, in a session of its own, whose group can be killed as a terminal does it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "changes.yaml"
    config.write_text(yaml.safe_dump(grid.CONFIG), encoding="utf-8")
    line = [SNAKEMAKE, *(grid.TARGETS if FULL else grid.FEW), "--snakefile", ROOT / "Snakefile"]
    line += ["--directory", folder, "--cores", "2", "--configfile", config, *options]
    with (folder / "said.log").open("ab") as said:
        return subprocess.Popen(
            [str(word) for word in line],
            # Each command in a process of its own, which the audit can tell from others.
            env=environment(MAMUSHI_WARM="off"),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Disturbed:
    """A workflow in a folder, which is killed at random moments until its results are complete."""

    def __init__(self, folder: Path, seed: int, longest: float) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.longest = longest
        """Seconds at most from a start of the workflow to the next kill."""
        self.kills: Counter[str] = Counter()
        self.starts = self.unlocked = self.at_once = self.orphans = self.taken_over = 0

    def through(self, most: int) -> int:
        """Run until the workflow is complete, with ``most`` kills at most; the kills that it took.

        Raises ``AssertionError`` where a result is damaged, or the workflow fails by itself.
        """
        kills, main = 0, None
        while True:
            if main is None:
                self.unlock()
                self.starts += 1
                main = start(self.folder)
            wait = self.random.uniform(0.5, self.longest)
            with contextlib.suppress(subprocess.TimeoutExpired):
                main.wait(wait if kills < most else PATIENCE)
                assert main.returncode == 0, (self.folder / "said.log").read_text()[-4000:]
                return kills
            assert kills < most, f"hangs: {(self.folder / 'said.log').read_text()[-4000:]}"
            kind, ends = self.kill(main)
            if ends and main.wait(PATIENCE) == 0:
                # It was complete before the signal came.
                return kills
            kills += 1
            self.kills[kind] += 1
            alive = commands(self.folder)
            readable(self.folder / "results")
            say(f"{sum(self.kills.values())} kills, last {kind}; {len(alive)} jobs are there")
            if not ends:
                continue
            main = None
            self.orphans += len(alive)
            if self.random.random() < 0.5:
                time.sleep(self.random.uniform(0.0, 4.0))
            else:
                self.at_once += 1

    def kill(self, main: subprocess.Popen[bytes]) -> tuple[str, bool]:
        """Kill something; say what, and whether the main process comes to its end by that.

        Signals to the main process are its user's or the machine's. ``group`` is Ctrl-C in a
        terminal, or its power cord; a job dies alone of a lack of memory. With a job of its own
        fails the main process, which first waits for the others, and not with an orphan.
        """
        # Of the main process most of all, because its jobs live on.
        kinds = ["main KILL", "main KILL", "main TERM", "main INT", "group INT", "group KILL"]
        kind = self.random.choice([*kinds, "job KILL", "job KILL", "job TERM"])
        who, _, name = kind.partition(" ")
        jobs = sorted(commands(self.folder))
        if who == "job" and not jobs:
            who, name, kind = "main", "KILL", "main KILL"
        number = signal.Signals[f"SIG{name}"]
        with contextlib.suppress(ProcessLookupError):
            if who == "main":
                main.send_signal(number)
            elif who == "group":
                os.killpg(main.pid, number)
            else:
                chosen = self.random.choice(jobs)
                own = _parent(chosen) == main.pid
                os.kill(chosen, number)
                return (kind, True) if own else (f"orphan {name}", False)
        return kind, True

    def unlock(self) -> None:
        """What Snakemake asks its user to do after it was killed."""
        locks = self.folder / ".snakemake" / "locks"
        if locks.is_dir() and any(locks.iterdir()):
            self.unlocked += 1
            assert start(self.folder, "--unlock").wait(PATIENCE) == 0

    def clean(self) -> None:
        """Delete everything, once the last orphan has ended."""
        until = time.monotonic() + PATIENCE
        while commands(self.folder):
            assert time.monotonic() < until, f"orphans hang: {commands(self.folder)}"
            time.sleep(0.2)
        shutil.rmtree(self.folder)


def readable(results: Path) -> None:
    """Read every result and every checkpoint, whatever still writes: all must be whole."""
    for attempt in range(20):
        # A file may be deleted between being listed and being opened, by an orphan or for one.
        try:
            grid.contents(results)
            for state in results.rglob("*.state"):
                with safe_open(state, "np") as file:
                    for name in file.keys():  # noqa: SIM118
                        file.get_tensor(name)
            return
        except Exception as error:
            if attempt == 19 or not _absent(error):
                raise
            time.sleep(0.1)


def _parent(pid: int) -> int:
    """The parent of a process, 0 for one that is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _absent(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or "no such file" in str(error).lower()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float]:
    """Results of a run that nothing disturbs, and how many seconds it takes."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    began = time.monotonic()
    assert start(folder).wait(4 * PATIENCE) == 0, (folder / "said.log").read_text()[-4000:]
    seconds = time.monotonic() - began
    say(f"undisturbed: {seconds:.0f} s")
    found = grid.contents(folder / "results")
    assert len(found) > (60 if FULL else 15)
    return found, seconds


def test_kills_at_random_moments(tmp_path: Path, undisturbed: tuple[dict[str, str], float]) -> None:
    expected, seconds = undisturbed
    # Long enough to come forward between two kills, on a slow machine too.
    run = Disturbed(tmp_path / "run", SEED, longest=min(max(seconds / 10, 6.0), 30.0))
    complete = doubles = waits = 0
    left = KILLS
    while left > 0:
        with Audit(run.folder) as audit:
            left -= run.through(left)
            found = grid.contents(run.folder / "results")
            # Orphans that waited for what is complete now come to their end, and change nothing.
            until = time.monotonic() + PATIENCE
            while commands(run.folder) and time.monotonic() < until:
                time.sleep(0.2)
        complete += 1
        waits += len(audit.waits)
        doubles += len(audit.doubles)
        assert audit.doubles == {}
        assert audit.samples > 100
        for results in (found, grid.contents(run.folder / "results")):
            assert results.keys() == expected.keys()
            assert [name for name in found if results[name] != expected[name]] == []
        left_over = [*run.folder.rglob("*.part"), *run.folder.rglob("*.state")]
        assert left_over == []
        assert not (run.folder / "results/cache").exists()
        say(f"complete for the {complete}. time; waited for another: {waits}, doubles: {doubles}")
        run.clean()
    say(f"seed {SEED}: {sum(run.kills.values())} kills: {dict(sorted(run.kills.items()))}")
    say(
        f"{run.starts} starts, {run.at_once} at once after a kill, {run.unlocked} after --unlock; "
        f"{run.orphans} jobs lived on; {waits} waited for another; {complete} complete grids"
    )
    assert sum(run.kills.values()) >= KILLS


def test_the_audit_sees_two_that_compute_the_same(made: Made, tmp_path: Path) -> None:
    """Outside of results nothing is claimed, and both compute: what must never happen inside."""
    copied = made.copy(tmp_path / "run")
    line = copied.commands["contaminate"]
    elsewhere = [word.replace(f"{grid.RUN}/arms/contaminated", "elsewhere") for word in line]
    copied.commands = {"elsewhere": elsewhere}
    with Audit(copied.folder) as audit:
        two = [copied.start("elsewhere", log=f"log{number}", cold=True) for number in range(2)]
        assert [one.wait() for one in two] == [0, 0]
    assert [*audit.doubles] == ["finetune elsewhere/card.json"]
