"""What follows from a stage's signature: its command, its job, one line for what is wrong."""

import argparse
import json
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.io.files import sha256
from mamushi.running import stage
from mamushi.running.stage import Job, stages

CELL = {"dataset": "d", "model": "m", "seed": 0}
PREDICT = {
    "selectors": ["one", "two"],
    "budgets": [],
    "max_length": 8,
    "of_tokens": [],
    "unforeseen": [],
}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line in which a command refuses its options."""
    assert main(words) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def ranking(settings: object) -> list[str]:
    files = ["--scores", "a", "b", "--examples", "a", "--tokens", "b", "--out", "out.parquet"]
    return ["predict", *files, "--settings", json.dumps(settings)]


def parsed(*words: str) -> Job:
    named = stages()[words[0]]
    parser = argparse.ArgumentParser()
    stage.add_arguments(parser, named)
    return stage.job_of(named, parser.parse_args(words[1:]))


def test_a_signature_says_what_a_file_is_for() -> None:
    roles = {p.name: (p.role, p.is_list, p.is_required) for p in stages()["finetune"].parameters}
    assert roles["examples"] == ("input", False, True)
    assert roles["removal"] == ("input", False, False)
    assert roles["card"] == ("output", False, True)
    assert list(roles) == ["examples", "tokens", "model_card", "removal", "spans", *list(roles)[5:]]
    lists = {p.name: p.role for p in stages()["predict"].parameters if p.is_list}
    assert lists == {"scores": "input"}


def test_a_missing_input_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = CELL | PREDICT
    assert "a: no such file" in refused(capsys, *ranking(settings))
    assert [*tmp_path.iterdir()] == []


def test_a_job_records_its_inputs_and_the_settings_as_they_came(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    settings = CELL | PREDICT | {"code": "c", "version": 1}
    command = parsed(*ranking(settings))
    origin = command.origin
    assert origin["settings"] == settings
    files = {"examples": "a", "tokens": "b", "scores/0": "a", "scores/1": "b"}
    assert origin["inputs"] == {name: sha256(tmp_path / file) for name, file in files.items()}
    assert command.outputs == [Path("out.parquet")]
    assert command.settings.cell == CELL
