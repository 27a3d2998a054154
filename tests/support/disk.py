"""A disk that is nearly full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int = 2) -> Iterator[None]:
    """A file system of so many megabytes in ``folder``.

    A limit on the size of files would not do: it is another error (EFBIG, with a signal before it),
    and it would hit the logs of Snakemake as well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("no right to mount a small file system: run as root to test a full disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, leave: int) -> None:
    """Take all space but ``leave`` bytes."""
    free = shutil.disk_usage(folder).free
    with (folder / "filler").open("wb") as handle:
        os.posix_fallocate(handle.fileno(), 0, free - leave)
