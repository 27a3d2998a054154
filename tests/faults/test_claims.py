"""The same output wanted twice: one command computes, the other waits and takes over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mamushi.artifacts import files, paths
from mamushi.running import claims, locks
from tests.support import small_grid as grid
from tests.support.audit import Audit, output
from tests.support.disk import fill, small_disk
from tests.support.made import OUTPUTS, RETRAINED, Made, sending, steps_in
from tests.support.small_grid import RUN
from tests.support.workflow import run

pytestmark = pytest.mark.slow

TAKEN = "the same command has run: took over the results of"
STATE = f"{RETRAINED}.state"


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def records(folder: Path) -> list[Path]:
    return sorted((folder / paths.CLAIMS).glob("*/record.json"))


@pytest.mark.parametrize("rule", ["retrain", "contaminate", "embed", "base_model"])
def test_started_twice_one_computes_and_the_other_takes_over(
    made: Made, tmp_path: Path, rule: str
) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS.get(rule, []))
    with Audit(copied.folder) as audit:
        two = [copied.start(rule, log=f"log{number}", cold=True) for number in range(2)]
        assert [one.wait() for one in two] == [0, 0]
    said = [copied.said(f"log{number}") for number in range(2)]
    assert sorted(TAKEN in log for log in said) == [False, True]
    (waited,) = [log for log in said if TAKEN in log]
    assert "waiting for" in waited and "which writes the same results/" in waited
    assert copied.differs() == []
    assert audit.doubles == {}
    (told,) = {what for what, _ in audit.waits}
    assert told == output(made.commands[rule])


def test_what_was_deleted_is_put_back_and_not_computed(made: Made, tmp_path: Path) -> None:
    """As Snakemake deletes what a killed run left, before the same job runs again."""
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    assert copied.start("retrain").wait() == 0
    inodes = [(copied.folder / path).stat().st_ino for path in OUTPUTS["retrain"]]
    (copied.folder / OUTPUTS["retrain"][0]).unlink()
    shutil.rmtree((copied.folder / OUTPUTS["retrain"][2]).parent)
    began = time.time()
    assert copied.start("retrain").wait() == 0
    assert TAKEN in copied.said()
    assert "pid" in copied.said() and "finished at" in copied.said()
    for path, inode in zip(OUTPUTS["retrain"], inodes, strict=True):
        stat = (copied.folder / path).stat()
        # The same file, newer than its inputs.
        assert stat.st_ino == inode
        assert stat.st_mtime >= began - 1
    assert copied.differs() == []


def test_outputs_that_are_deleted_while_the_rest_is_computed_are_not_lost(
    made: Made, tmp_path: Path
) -> None:
    """A restarted Snakemake deletes the outputs that an orphan has written so far."""
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    deletes = (
        "import os\nfrom mamushi.lm import perplexity\nmeasure = perplexity.text_nll\n"
        "def text_nll(*args, **named):\n"
        f"    os.unlink({OUTPUTS['retrain'][0]!r})\n"
        "    return measure(*args, **named)\n"
        "perplexity.text_nll = text_nll\n"
    )
    assert copied.start("retrain", deletes).wait() == 0
    assert not (copied.folder / OUTPUTS["retrain"][0]).exists()
    assert copied.start("retrain").wait() == 0
    assert TAKEN in copied.said()
    assert copied.differs() == []


@pytest.mark.parametrize("change", ["settings", "input", "damage"])
def test_what_is_not_the_same_is_computed(made: Made, tmp_path: Path, change: str) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    assert copied.start("retrain").wait() == 0
    (record,) = records(copied.folder)
    # By time: what is made anew may get the number of the file that was deleted.
    before = {path: path.stat().st_mtime_ns for path in record.parent.iterdir()}
    if change == "settings":
        line = copied.commands["retrain"]
        at = line.index("--settings") + 1
        other = json.loads(line[at]) | {"code": "other"}
        copied.commands = {"retrain": [*line[:at], json.dumps(other), *line[at + 1 :]]}
    elif change == "input":
        os.utime(copied.folder / f"{RUN}/removals/lr_cos/beta0.25.parquet")
    else:
        with (copied.folder / OUTPUTS["retrain"][1]).open("r+b") as handle:
            handle.write(b"damaged")
        (copied.folder / OUTPUTS["retrain"][1]).unlink()
    assert copied.start("retrain", sending()).wait() == 0
    assert TAKEN not in copied.said()
    assert steps_in(copied.said()) > 50
    # One version is kept, not two.
    assert records(copied.folder) == [record]
    names = {path.name for path in record.parent.iterdir()}
    assert names == {path.name for path in before}
    assert record.stat().st_mtime_ns != before[record]


def test_who_waits_for_one_that_is_killed_goes_on_from_its_state(
    made: Made, tmp_path: Path
) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    first = copied.start("retrain", sending(), "first", cold=True, checkpoint_seconds=0)
    until((copied.folder / STATE).exists)
    second = copied.start("retrain", sending(), "second", checkpoint_seconds=0)
    until(lambda: "waiting for" in copied.said("second"))
    assert f"pid {first.pid}" in copied.said("second")
    assert steps_in(copied.said("second")) == 0
    first.kill()
    assert first.wait() == -signal.SIGKILL
    assert second.wait() == 0
    assert TAKEN not in copied.said("second")
    total = int(json.loads((copied.folder / RETRAINED).read_text())["steps"])
    computed = steps_in(copied.said("first")) + steps_in(copied.said("second"))
    # But for the steps between the last checkpoint and the kill: one and a part of the next.
    assert total <= computed <= total + 2
    assert copied.differs() == []


def test_who_waited_too_long_does_not_overwrite_what_is_wanted_now(
    made: Made, tmp_path: Path
) -> None:
    """Two orphans of killed runs, one that computes and one that waits for it; then the settings
    are changed, and the workflow is started again."""
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    old = made.copy(tmp_path / "old").commands["retrain"]
    at = old.index("--settings") + 1
    new = [*old[:at], json.dumps(json.loads(old[at]) | {"code": "new"}), *old[at + 1 :]]
    first = copied.start("retrain", log="first")
    until(lambda: bool([*(copied.folder / paths.CLAIMS).glob("*/lock")]))
    second = copied.start("retrain", log="second")
    until(lambda: "waiting for" in copied.said("second"))
    copied.commands = {"retrain": new}
    third = copied.start("retrain", log="third")
    until(lambda: "waiting for" in copied.said("third"))
    first.kill()
    first.wait()
    assert (second.wait(), third.wait()) == (2, 0)
    assert "with other settings, came after this one" in copied.said("second")
    card = json.loads((copied.folder / RETRAINED).read_text())
    assert card["settings"]["code"] == "new"


def test_a_failed_command_leaves_no_record(made: Made, tmp_path: Path) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    (copied.folder / f"results/base/{grid.MODEL}/model.safetensors").unlink()
    assert copied.start("retrain").wait() == 2
    assert records(copied.folder) == []
    (folder,) = (copied.folder / paths.CLAIMS).iterdir()
    assert {path.name for path in folder.iterdir()} == {claims.LOCK, claims.QUEUE, claims.WANTED}


NO_LINKS = """
import errno, os
def link(*args, **named):
    raise OSError(errno.ENOTSUP, "Operation not supported")
os.link = link
"""
NO_LOCKS = """
import errno, fcntl
def flock(*args):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = flock
"""


@pytest.mark.parametrize(("wrapper", "told"), [(NO_LINKS, ""), (NO_LOCKS, "no locks in")])
def test_file_systems_without_links_or_locks(
    made: Made, tmp_path: Path, wrapper: str, told: str
) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    for _ in range(2):
        assert copied.start("retrain", wrapper).wait() == 0
        assert TAKEN not in copied.said()
        assert told in copied.said()
        assert "error" not in copied.said().lower()
    assert records(copied.folder) == []
    assert copied.differs() == []


def test_clearing_leaves_what_a_living_process_writes_or_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("written", "waited", "done"):
        (tmp_path / name).mkdir()
        (tmp_path / name / claims.RECORD).write_text("{}")
        (tmp_path / name / "0").write_text("kept")
    # Each of these open the file anew, so that they keep each other out in one process, too.
    writes = locks.attempt(tmp_path / "written" / claims.LOCK, "retrain")
    waits = locks.attempt(tmp_path / "waited" / claims.QUEUE, "retrain", shared=True)
    more = locks.attempt(tmp_path / "waited" / claims.QUEUE, "retrain", shared=True)
    assert writes and waits and more
    claims.clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["waited", "written"]
    assert (tmp_path / "written" / "0").exists() and (tmp_path / "waited" / "0").exists()
    writes.release()
    waits.release()
    claims.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["waited"]
    more.release()
    claims.clear(tmp_path)
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_a_lock_file_that_was_deleted_locks_nobody_out_and_lets_nobody_in_twice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    first = locks.attempt(path, "one")
    assert first is not None
    assert locks.holder(path)["pid"] == os.getpid()
    assert locks.attempt(path, "two") is None
    path.unlink()
    second = locks.attempt(path, "two")
    assert second is not None and locks.attempt(path, "three") is None
    first.release()
    # The end of the first, whose file is gone, has not let go of the second.
    assert locks.attempt(path, "three") is None
    second.release()


def test_a_lock_that_is_replaced_between_opening_and_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = tmp_path / "lock", locks.fcntl.flock
    replaced: list[int] = []

    def replacing(descriptor: int, kind: int) -> None:
        if not replaced:
            path.unlink()
            replaced.append(descriptor)
        flock(descriptor, kind)

    monkeypatch.setattr(locks.fcntl, "flock", replacing)
    lock = locks.attempt(path, "one")
    assert lock is not None and replaced
    assert os.fstat(lock.descriptor).st_ino == path.stat().st_ino
    lock.release()


def test_a_lock_ends_with_its_holder_and_not_with_its_children(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    reads, writes = os.pipe()
    holder = os.fork()
    if holder == 0:
        locks.attempt(path, "holder")
        if os.fork() == 0:
            # A forked child outlives the holder by far.
            os.write(writes, b"x")
            time.sleep(20)
        time.sleep(20)
        os._exit(0)
    assert os.read(reads, 1) == b"x"
    assert locks.attempt(path, "other") is None
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    lock = locks.attempt(path, "other")
    assert lock is not None
    lock.release()


def test_what_is_written_is_kept_under_one_name_each(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def keep(part: Path, target: Path) -> None:
        assert part.read_text() == '"value"\n'
        seen.append((part.name, target.name))

    files.keepers.append(keep)
    try:
        files.write_json(tmp_path / "a.json", "value")
    finally:
        files.keepers.remove(keep)
    ((part, target),) = seen
    assert (part, target) == (files.part_of(tmp_path / "a.json").name, "a.json")


def test_a_full_disk_once_and_the_same_command_again(made: Made, tmp_path: Path) -> None:
    results = tmp_path / "run" / "results"
    with small_disk(results, megabytes=8):
        copied = tmp_path / "run"
        shutil.copytree(made.folder, copied, dirs_exist_ok=True)
        for path in OUTPUTS["retrain"]:
            (copied / path).unlink()
        fill(results, leave=2**14)
        config = grid.CONFIG | {"execution": {"checkpoint_seconds": 0}}
        done = run(*grid.FEW, directory=copied, config=config, check=False)
        assert done.returncode != 0
        assert "no space left" in done.stdout
        assert "Traceback" not in done.stdout
        now = grid.contents(results)
        assert [name for name in now if now[name] != made.contents.get(name, now[name])] == []
        (results / "filler").unlink()
        run(*grid.FEW, directory=copied, config=config)
        assert grid.contents(results) == made.contents
        assert not (results / "claims").exists()
        assert [*results.rglob("*.part"), *results.rglob("*.state")] == []


def test_who_forces_a_job_to_run_has_it_computed(made: Made, tmp_path: Path) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    assert copied.start("retrain").wait() == 0
    first = (copied.folder / RETRAINED).stat().st_ino
    # Under another name it lives on, so that no new file gets its number.
    os.link(copied.folder / RETRAINED, tmp_path / "first")
    run(grid.FEW[0], "--forcerun", "retrain", directory=copied.folder, config=grid.CONFIG)
    assert (copied.folder / RETRAINED).stat().st_ino != first
    assert copied.differs() == []
