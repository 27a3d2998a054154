"""What follows from a stage's signature: its command, its job, one line for what is wrong."""

import argparse
import json
from pathlib import Path

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
