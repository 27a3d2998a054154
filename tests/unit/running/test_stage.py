"""What follows from a stage's signature: its command, its job, one line for what is wrong."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io.files import sha256
from mamushi.running import stage
from mamushi.running.stage import Input, Job, Output, Stage, stages

CELL = {"dataset": "d", "model": "m", "seed": 0}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line in which a command refuses its options."""
    assert main(words) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def runtime(settings: object) -> list[str]:
    files = ["--scores", "a", "b", "--logs", "a.log", "b.log", "--out", "out.parquet"]
    return ["runtime", *files, "--settings", json.dumps(settings)]


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
    lists = {p.name: (p.role, p.kind) for p in stages()["runtime"].parameters if p.is_list}
    assert lists == {"scores": ("input", Path), "logs": ("option", str)}


def test_an_option_without_a_value_is_a_file_that_a_rule_has_not() -> None:
    parser = argparse.ArgumentParser()
    stage.add_arguments(parser, stages()["score"])
    files = ["--examples", "e", "--embeddings", "x", "--out", "o", "--settings", "{}"]
    for words, base in (([], None), (["--base"], None), (["--base", "b"], Path("b"))):
        assert parser.parse_args([*files, *words]).base == base


def test_a_missing_input_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = CELL | {"chains": {}, "scored": ["one", "two"]}
    assert "a: no such file; check the path" in refused(capsys, *runtime(settings))
    assert [*tmp_path.iterdir()] == []


def test_a_job_records_its_inputs_and_the_settings_as_they_came(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    settings = CELL | {"chains": {}, "scored": ["one", "two"], "code": "c", "version": 1}
    command = parsed(*runtime(settings))
    origin = command.origin
    assert origin["settings"] == settings
    assert origin["inputs"] == {f"scores/{at}": sha256(tmp_path / n) for at, n in enumerate("ab")}
    assert command.outputs == [Path("out.parquet")]
    assert command.settings.cell == CELL


def test_the_function_gets_what_its_command_names(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    def copy(*, source: Input, out: Output, settings: Any, job: Job) -> None:
        """Copy."""
        calls.append({"source": source, "out": out, "settings": settings, "job": job})

    copied = Stage("copy", copy, stage)  # type: ignore[arg-type]
    files = {"source": tmp_path / "a", "out": tmp_path / "b"}
    files["source"].touch()
    (job := Job(copied, files, "settings", {}, stage.Execution())).run()
    assert calls == [{**files, "settings": "settings", "job": job}]
    assert copied.summary == "Copy." and not copied.is_on_gpu
    assert {name for name, named in stages().items() if named.is_on_gpu} == {
        *("base-model", "embed", "evaluate", "finetune", "generate", "judge"),
        *("influence", "membership", "relearn", "task-scores", "unlearn"),
    }
