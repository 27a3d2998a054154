"""Kills at random moments: nothing lost, nothing corrupt.

`MAMUSHI_KILLS` says how many, and `MAMUSHI_KILLS_SEED` chooses other moments.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import yaml
from safetensors import safe_open

from tests.support import small_grid as grid
from tests.support.made import Made
from tests.support.workflow import ROOT, SNAKEMAKE, environment

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MAMUSHI_KILLS", "4"))
SEED = int(os.environ.get("MAMUSHI_KILLS_SEED", "0"))
PATIENCE = 300.0
"""Seconds after which something hangs that was asked to end."""
KINDS = ("main KILL", "main KILL", "main TERM", "main INT", "group INT", "group KILL", "job KILL")
"""Who gets which signal. ``group`` is Ctrl-C in a terminal, or its power cord; a job dies alone of
a lack of memory, and with it the main process, which first waits for the others."""


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """The workflow, in a session of its own, whose group can be killed as a terminal does it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "changes.yaml"
    config.write_text(yaml.safe_dump(grid.CONFIG), encoding="utf-8")
    line = [SNAKEMAKE, *grid.FEW, "--snakefile", ROOT / "Snakefile"]
    line += ["--directory", folder, "--cores", "2", "--configfile", config, *options]
    with (folder / "said.log").open("ab") as said:
        return subprocess.Popen(
            [str(word) for word in line],
            # Each command in a process of its own, which can be killed alone.
            env=environment(MAMUSHI_WARM="off"),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(main: subprocess.Popen[bytes], folder: Path, chance: random.Random) -> None:
    """Kill something by which the main process comes to its end."""
    who, _, name = chance.choice(KINDS).partition(" ")
    number = signal.Signals[f"SIG{name}"]
    jobs = sorted(pid for pid, parent in commands(folder).items() if parent == main.pid)
    with contextlib.suppress(ProcessLookupError):
        if who == "group":
            os.killpg(main.pid, number)
        elif who == "job" and jobs:
            os.kill(chance.choice(jobs), number)
        else:
            main.send_signal(signal.SIGKILL if who == "job" else number)


def commands(folder: Path) -> dict[int, int]:
    """The processes of stage commands that run in a folder, each with its parent's."""
    every = (process.info for process in psutil.process_iter(["pid", "ppid", "cmdline", "cwd"]))
    here = (about for about in every if about["cwd"] == str(folder.resolve()))
    ours = (about for about in here if (about["cmdline"] or [])[1:3] == ["-m", "mamushi"])
    return {about["pid"]: about["ppid"] for about in ours}


def check_readable(results: Path) -> None:
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
            if attempt == 19 or "no such file" not in str(error).lower():
                raise
            time.sleep(0.1)


def test_kills_at_random_moments(tmp_path: Path, made: Made) -> None:
    folder, chance, kills = tmp_path / "run", random.Random(SEED), 0
    while kills < KILLS:
        main = start(folder)
        while main.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                main.wait(chance.uniform(0.5, 8.0) if kills < KILLS else PATIENCE)
                break
            assert kills < KILLS, f"hangs: {(folder / 'said.log').read_text()[-4000:]}"
            kill(main, folder, chance)
            main.wait(PATIENCE)
            kills += 1
            check_readable(folder / "results")
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0.0, 4.0))
            # As Snakemake asks its user after it was killed.
            if any((folder / ".snakemake").glob("locks/*")):
                assert start(folder, "--unlock").wait(PATIENCE) == 0
            main = start(folder)
        assert main.returncode == 0, (folder / "said.log").read_text()[-4000:]
        # Orphans that waited for what is complete now come to their end, and change nothing.
        until = time.monotonic() + PATIENCE
        while commands(folder) and time.monotonic() < until:
            time.sleep(0.2)
        assert grid.contents(folder / "results") == made.contents
        assert [*folder.rglob("*.part"), *folder.rglob("*.state")] == []
        assert not (folder / "results/cache").exists()
        shutil.rmtree(folder)
