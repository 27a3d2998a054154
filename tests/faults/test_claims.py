"""The same output wanted twice: one command computes, the other waits; and disks that are full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mamushi.io import paths
from tests.support import small_grid as grid
from tests.support.made import OUTPUTS, Made
from tests.support.workflow import run

pytestmark = pytest.mark.slow


def test_started_twice_both_come_to_the_result_one_after_the_other(
    made: Made, tmp_path: Path
) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    two = [copied.start("retrain", log=f"log{n}", cold=True) for n in range(2)]
    assert [one.wait() for one in two] == [0, 0]
    waited = ["which writes the same results/" in copied.said(f"log{n}") for n in range(2)]
    assert sorted(waited) == [False, True]
    assert copied.differs() == []


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of 8 MB in ``folder``. A limit on the size of files would not do: it is another
    error (EFBIG, with a signal before it), and it would hit the logs of Snakemake as well."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system: run as root to test a full disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_once_and_the_same_command_again(made: Made, tmp_path: Path) -> None:
    results = tmp_path / "run" / "results"
    with small_disk(results):
        copied = tmp_path / "run"
        shutil.copytree(made.folder, copied, dirs_exist_ok=True)
        # The model is made for its evaluation, without which nothing would ask for it.
        for path in [*OUTPUTS["retrain"], grid.FEW[0]]:
            (copied / path).unlink(missing_ok=True)
        with (results / "filler").open("wb") as handle:
            os.posix_fallocate(handle.fileno(), 0, shutil.disk_usage(results).free - 2**14)
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
        assert not (copied / paths.CLAIMS).exists()
        assert [*results.rglob("*.part"), *results.rglob("*.state")] == []
