"""Digests that are looked up, and what must never be mistaken for what it was."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from mamushi.io import digests

BIG = b"x" * (digests.SMALL + 1)


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with results, and no wait until files are old enough."""
    monkeypatch.setattr(digests, "SETTLED", -1)
    Path("results").mkdir()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read."""
    Path("a").write_bytes(BIG)
    found: list[str] = []
    read = digests.sha256
    monkeypatch.setattr(digests, "sha256", lambda path: found.append(str(path)) or read(path))
    return found


def expected() -> str:
    return hashlib.sha256(Path("a").read_bytes()).hexdigest()


def moved(date: int) -> None:
    """Another file of the same size, and of an older date, is moved into its place."""
    Path("b").write_bytes(BIG[:-1] + b"y")
    os.utime("b", (date, date))
    Path("b").replace("a")


def same_date() -> None:
    date = os.stat("a").st_mtime_ns
    with open("a", "rb+") as handle:
        handle.write(b"y")
    os.utime("a", ns=(date, date))


@pytest.mark.parametrize("change", [lambda: moved(0), same_date])
def test_a_file_is_read_once_and_again_where_it_has_changed(change, reads: list[str]) -> None:
    before = [digests.of("a") for _ in range(3)]
    assert before == [expected()] * 3 and reads == ["a"]
    change()
    assert digests.of("a") == expected() != before[0]
    assert len(reads) == 2


def test_a_young_file_is_not_remembered(monkeypatch: pytest.MonkeyPatch, reads: list[str]) -> None:
    """It could change again without another time."""
    monkeypatch.setattr(digests, "SETTLED", 2)
    assert digests.of("a") == digests.of("a")
    assert len(reads) == 2
    os.utime("a", (time.time() + 99,) * 2)
    digests.of("a")
    assert not digests.STORE.exists()
