"""Locks between processes: never stale, never two holders, whatever becomes of the file."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from mamushi.running import locks


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
