"""One writer per output; finished outputs are kept, anything else is computed."""

from __future__ import annotations

import errno
import functools
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io import paths, schemas
from mamushi.io.files import sha256, write_json
from mamushi.io.tables import write_table
from mamushi.running import locks
from mamushi.stages import models as computed

KEPT = "made from the same already; kept as it is"
OUT = Path("results/data/d/tokens/m.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, with quick locks, in which a stage is made to write just what it was made from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locks, "POLL", 0.01)
    for name in ("examples", "card"):
        Path(name).write_text(name)
    return tmp_path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The outputs that the stage computed, in order."""
    made: list[Path] = []

    @functools.wraps(computed.tokens)
    def run(files: Any, settings: Any, job: Any) -> None:
        made.append(files.out)
        write_table(files.out, schemas.TOKENS, {"id": ["a"], "tokens": [[1]]}, metadata=job.origin)

    monkeypatch.setattr(computed, "tokens", run)
    return made


def tokens(out: Path = OUT, **settings: Any) -> int:
    given = json.dumps({"max_length": 8, "code": "c"} | settings)
    inputs = ["--examples", "examples", "--model-card", "card"]
    return main(["tokens", *inputs, "--out", str(out), "--settings", given])


def damage(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def test_finished_outputs_are_kept_and_newer_than_their_inputs(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokens() == 0
    assert "mamushi tokens: took " in capsys.readouterr().err
    os.utime(OUT, (0, 0))
    before = OUT.read_bytes()
    # An input that was made again, with the same content.
    Path("examples").write_text("examples")
    assert tokens() == 0
    assert len(runs) == 1
    said = capsys.readouterr().err
    assert f"{OUT}: {KEPT}" in said
    assert " took " not in said
    assert OUT.read_bytes() == before
    assert OUT.stat().st_mtime >= Path("examples").stat().st_mtime
    assert [*Path(paths.CLAIMS).iterdir()] == []


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (lambda: None, {"max_length": 9}),
        (lambda: None, {"code": "other"}),
        (lambda: Path("examples").write_text("other"), {}),
        (OUT.unlink, {}),
        (lambda: damage(OUT), {}),
    ],
    ids=["settings", "code", "input", "missing", "damaged"],
)
def test_what_is_not_the_same_is_computed(
    runs: list[Path], change: Callable[[], Any], settings: dict[str, Any]
) -> None:
    assert tokens() == 0
    change()
    assert tokens(**settings) == 0
    assert len(runs) == 2


def test_all_outputs_must_say_that_they_were_made_from_the_same() -> None:
    origin = {"settings": {"a": 1}, "inputs": {}, "versions": {}}
    one, two, tensors = Path("one.json"), Path("two.json"), Path("x.safetensors")
    write_json(one, {**origin, "steps": 3})
    assert locks.finished([one], origin)
    for other in ({}, {**origin, "inputs": {"x": "1"}}):
        write_json(two, other)
        assert not locks.finished([one, two], origin)
    for cut in (b"", b"\x08\0\0\0\0\0\0\0{", b"\xff" * 20):
        tensors.write_bytes(cut)
        assert not locks.finished([one, tensors], origin)


def test_a_models_folder_is_finished_when_its_card_is_of_its_files() -> None:
    model, origin = Path("model"), {"settings": {}, "inputs": {}, "versions": {}}
    model.mkdir()
    assert not locks.finished([model], origin)
    (model / "weights").write_text("1")
    card = {"digests": {"weights": sha256(model / "weights")}, "provenance": origin}
    write_json(model / "card.json", card)
    assert locks.finished([model], origin)
    (model / "weights").write_text("2")
    assert not locks.finished([model], origin)
    (model / "weights").unlink()
    assert not locks.finished([model], origin)


def test_who_comes_second_waits_and_reads_its_inputs_only_then(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with locks.claimed("tokens", [OUT]):
        waiting = threading.Thread(target=tokens)
        waiting.start()
        time.sleep(0.2)
        assert runs == []
        Path("examples").write_text("made anew")
    waiting.join()
    assert len(runs) == 1
    assert f"waiting for {os.uname().nodename} pid" in capsys.readouterr().err
    assert tokens() == 0 and len(runs) == 1


def test_a_command_that_fails_lets_the_next_one_in(runs: list[Path]) -> None:
    Path("card").unlink()
    assert tokens() == 2
    assert [*Path(paths.CLAIMS).iterdir()] == []
    Path("card").write_text("card")
    assert tokens() == 0


def test_elsewhere_than_in_results_nothing_is_claimed(runs: list[Path], tmp_path: Path) -> None:
    with locks.claimed("tokens", [Path("results/../own.parquet")]):
        assert tokens(Path("own.parquet")) == 0
    assert not Path(paths.CLAIMS).exists()


def test_without_locks_it_goes_on(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def flock(*args: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    assert (tokens(), tokens()) == (0, 0)
    assert len(runs) == 1
    assert "no locks in results/claims (No locks available)" in capsys.readouterr().err
