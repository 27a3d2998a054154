"""What follows from a stage's declaration: parser, command, one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mamushi.cli import main
from mamushi.running import stage

CELL = {"dataset": "d", "model": "m", "seed": 0}
RETRAIN = {
    "examples": "examples.parquet",
    "tokens": "tokens.parquet",
    "model-card": "base/card.json",
    "removal": "removals.parquet",
    "log-table": "log.parquet",
    "card": "card.json",
    "perplexity": "perplexity.parquet",
    "nll": "nll.parquet",
}


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line in which a command refuses what it was given."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def diagnostics(scores: list[str], selectors: list[str], settings: object = CELL) -> list[str]:
    listed = ["--scores", *scores, "--selectors", *selectors, "--out", "out.parquet"]
    return ["diagnostics", *listed, "--settings", json.dumps(settings)]


def test_the_command_of_a_rule_has_each_file_where_its_role_says() -> None:
    places = {"input": "{input.NAME}", "output": "{output.NAME}", "params": "{params.NAME}"}
    assert stage.command("frontier", places) == (
        "python -m mamushi frontier --scores {input.scores} --selectors {params.selectors} "
        "--ratio {input.ratio} --refits {input.refits} --calibrated {input.calibrated} "
        "--out {output.out}"
    )
    assert stage.command("half-gap", {**places, "out_folder": "tables"}) == (
        "python -m mamushi half-gap --out-folder tables"
    )


@pytest.mark.parametrize("left_out", [*sorted(RETRAIN.keys() - {"removal"}), "settings"])
def test_what_is_not_optional_is_asked_for(
    left_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = RETRAIN | {"settings": "{}"}
    words = [f"--{name}={value}" for name, value in given.items() if name != left_out]
    with pytest.raises(SystemExit):
        main(["retrain", *words])
    assert f"are required: --{left_out};" in capsys.readouterr().err


def test_an_option_without_a_value_is_a_file_that_a_rule_has_not(tmp_path: Path) -> None:
    parser = stage.argparse.ArgumentParser()
    stage.arguments(parser, stage.Loaded("score"))
    files = ["--examples", "e", "--embeddings", "x", "--out", "o", "--settings", "{}"]
    assert parser.parse_args([*files, "--base"]).base is None
    assert parser.parse_args(files).base is None
    assert parser.parse_args([*files, "--base", "b"]).base == Path("b")


def test_a_missing_input_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "a.parquet: no such file; check the path" in told(
        capsys, *diagnostics(["a.parquet"], ["a"])
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "d", "model": "m"}, "--settings: Object missing required field `seed`"),
        (CELL | {"seed": "0"}, "--settings: Expected `int`, got `str` - at `$.seed`"),
    ],
)
def test_settings_of_another_form_are_told(
    settings: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in told(capsys, *diagnostics(["a"], ["a"], settings))


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_settings_that_are_no_object_are_told(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--settings: " in told(capsys, "tables", "--out-folder", "x", "--settings", text)


def test_files_of_a_list_are_recorded_under_their_names(tmp_path: Path) -> None:
    parser = stage.argparse.ArgumentParser()
    loaded = stage.Loaded("diagnostics")
    stage.arguments(parser, loaded)
    for name in "ab":
        (tmp_path / name).write_text(name)
    words = diagnostics([str(tmp_path / "a"), str(tmp_path / "b")], ["one", "two"])
    command = stage.parse("diagnostics", parser.parse_args(words[1:]))
    assert command.job().origin["inputs"].keys() == {"scores/one", "scores/two"}
    assert command.outputs == [Path("out.parquet")]
    assert command.settings.cell == CELL


@pytest.mark.parametrize(
    ("given", "here", "under_slurm"),
    [
        ({}, 600, 1800),
        ({"checkpoint_seconds": "auto"}, 600, 1800),
        ({"checkpoint_seconds": 5}, 5, 5),
    ],
)
def test_checkpoints_are_rarer_under_slurm_unless_the_user_says_otherwise(
    given: dict[str, Any], here: float, under_slurm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job, seconds in ((None, here), ("7", under_slurm)):
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        if job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
        assert msgspec.convert(given, stage.Execution).checkpoint_seconds == seconds
