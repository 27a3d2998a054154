"""The stages of the room: what they write, how a killed one goes on, and what follows from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi_extras.influence.schemas import TOKEN_INFLUENCE
from tests.support.models import ENDS_FROZEN, TRAINING
from tests.support.score_files import write_examples
from tests.support.stage_files import WORDS, command, texts_of, tokenize, write_base
from tests.support.steps import kill_at

FROZEN = TRAINING | ENDS_FROZEN
HOW = {"points": 3, "batches": 4, "targets": 5}
HOW |= {"trained_before": False}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, and texts of the contamination and the inference section."""
    root = tmp_path_factory.mktemp("base")
    write_base(root)
    rng = np.random.default_rng(1)
    count = 40
    write_examples(
        root / "examples.parquet",
        [f"t{i:02d}" for i in range(count)],
        ["forget", "retain"] * (count // 2),
        text=[" ".join(rng.choice(WORDS, rng.integers(2, 10))) for _ in range(count)],
        section=["contamination"] * 16 + ["inference"] * (count - 16),
    )
    tokenize(root)
    return root


def settings(**changes: Any) -> dict[str, Any]:
    return {
        **{"dataset": "d", "model": "m", "seed": 0, "role": "beta0", "section": "inference"},
        **{"domains": ["forget", "retain"], "training": FROZEN, **HOW},
        **changes,
    }


def measure(base: Path, out: Path, **changes: Any) -> int:
    files = {**texts_of(base), "out": out}
    return main(command("influence", settings(**changes), **files))


def values(out: Path) -> list[list[float]]:
    found: list[list[float]] = read_table(out, TOKEN_INFLUENCE)["influence"].to_pylist()
    return found


def test_every_token_that_is_predicted_has_its_influence(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "influence.parquet"
    assert measure(base, out) == 0
    table, about = read_table(out, TOKEN_INFLUENCE), read_metadata(out)
    examples = read_table(base / "examples.parquet", schemas.EXAMPLES).to_pylist()
    ranked = [row["id"] for row in examples if row["section"] == "inference"]
    assert table["id"].to_pylist() == ranked
    tokens = read_table(base / "tokens.parquet", schemas.TOKENS).to_pylist()
    lengths = {row["id"]: len(row["tokens"]) - 1 for row in tokens}
    assert [len(text) for text in values(out)] == [lengths[name] for name in ranked]
    assert (about["points"], about["eps"]) == ([4, 8, 12], 3e-4)
    assert about["targets"] == {"forget": 5, "retain": 5}
    assert [*tmp_path.iterdir()] == [out]


# Of twelve steps of 4 texts and 3 points, each with two gradients: before, at and behind a point.
@pytest.mark.parametrize("call", [3, 6, 8, 17])
def test_a_killed_one_goes_on_to_equal_bits(
    call: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    assert measure(base, whole) == 0
    with monkeypatch.context() as patch:
        kill_everywhere(patch, call)
        assert measure(base, out) == 2
    assert (tmp_path / "out.parquet.state").exists() and not out.exists()
    assert measure(base, out) == 0
    assert values(whole) == values(out)
    assert {*tmp_path.iterdir()} == {whole, out}


def kill_everywhere(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Kill at that gradient, be it of a step or of targets."""
    from mamushi.lm import training
    from mamushi_extras.influence import measuring

    kill_at(monkeypatch, call, UserError)
    monkeypatch.setattr(measuring, "gradient", training.gradient)


def test_at_the_weights_of_a_model_nothing_is_trained(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "influence.parquet"
    assert measure(base, out, trained_before=True) == 0
    table, about = read_table(out, TOKEN_INFLUENCE), read_metadata(out)
    assert table["fold"].null_count == len(table)
    assert (about["batches"], about["targets"]) == (4, {"forget": [5], "retain": [5]})
    again = tmp_path / "again.parquet"
    # No setting of a step's length in time counts, and the rate alone scales what is measured.
    training = {**FROZEN, "epochs": 9.0, "schedule": "linear", "learning_rate": 1e-3}
    assert measure(base, again, trained_before=True, points=1, training=training) == 0
    ratio = np.concatenate(values(out)) / np.concatenate(values(again))
    assert ratio == pytest.approx(10, rel=1e-4)
    assert {*tmp_path.iterdir()} == {out, again}
