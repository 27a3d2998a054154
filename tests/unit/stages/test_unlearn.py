"""The stage `unlearn`: what it stores, from which list."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.columns import Table
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import parameters
from mamushi_extras.left.schemas import RELEARNING_CURVE
from tests.support.models import ENDS_FROZEN, training_of
from tests.support.stage_files import (
    FORGET,
    command,
    listed,
    measure,
    measuring,
    opened,
    texts_of,
    unlearn_words,
    unlearning,
    write_start,
)

TRAINS = {"trained_blocks": 2, "max_length": 12}
START = {"precision": "fp32"}
RELEARNING = {"examples": 3, "steps": [1, 4], "batch_size": 2, "learning_rate": 1e-3}
ASKED: dict[str, tuple[dict[str, Any], Table]] = {
    "generate": (
        {"probe": {"prompts": ["the cat", "a dog saw"], "new_tokens": 5}},
        schemas.CONTINUATIONS,
    ),
    "relearn": (
        {
            **{"seed": 0, "trains": TRAINS, "evaluation": {"max_length": 16}},
            "relearning": RELEARNING,
        },
        RELEARNING_CURVE,
    ),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, a start model's tensors, examples and tokens."""
    root = tmp_path_factory.mktemp("unlearn")
    write_start(root)
    return root


def unlearn(base: Path, out: Path, settings: dict[str, Any] | None = None, **options: Any) -> int:
    return main(unlearn_words(base, out, settings or unlearning(), **options))


def names(path: Path, ids: list[str]) -> Path:
    path.write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")
    return path


def perplexities(base: Path, out: Path) -> list[float]:
    """Measured by the stage `evaluate`, with both files laid over the base model."""
    stored = {"trained": base / "start.safetensors", "unlearned": out / "trained.safetensors"}
    return measure(base, out, **stored)


@pytest.mark.parametrize("kind", ["neggrad_plus", "salun", "npo"])
def test_it_stores_what_it_trained_and_leaves_no_state(
    kind: str, base: Path, tmp_path: Path
) -> None:
    removal = names(tmp_path / "list.txt", [f"if{number}" for number in (3, 0, 7, 5, 8)])
    out, settings = tmp_path / "out", unlearning(kind)
    own = measuring(out)
    assert unlearn(base, out, settings, removal=removal, **own) == 0
    card = read_json(out / "card.json")
    # floor(5 epochs * 5 texts / 4)
    counts = {"texts": FORGET, "removed": 5, "steps": 6, "stopped_at": None}
    assert card.items() >= counts.items()
    model = opened(base / "card.json", out / "trained.safetensors")
    trained = model.num_parameters(only_trainable=True)
    assert card["trained_parameters"] == trained
    assert card["masked"] == (trained // 2 if kind == "salun" else None)
    assert card["settings"] == settings
    assert card["inputs"].keys() == {"examples", "tokens", "model_card", "trained", "removal"}
    assert card["inputs"]["removal"] == sha256(removal)
    log = read_table(out / "log.parquet", schemas.UNLEARN_LOG)
    assert log["step"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert read_metadata(out / "log.parquet")["settings"] == settings
    assert np.isfinite(perplexities(base, out)).all()
    # Its own job has measured it as the stage of that does, to the byte.
    assert own["nll"].read_bytes() == (out / "nll.parquet").read_bytes()
    assert not (out / "card.json.state").exists()


@pytest.mark.parametrize(
    ("kind", "tensors", "changes"),
    [
        ("logit_bias", {"bias"}, {"strength": 0.7}),
        ("tilt", {"A", "B", "c"}, {"strength": 0.7, "temperature": 1.05}),
    ],
)
def test_an_edit_is_stored_alone_and_without_steps(
    kind: str, tensors: set[str], changes: dict[str, float], base: Path, tmp_path: Path
) -> None:
    removal = listed(tmp_path / "removals.parquet", base, ["if3", "if0", "if7"])
    settings = unlearning(kind)
    settings["settings"] |= changes | {"harm": 100.0}
    # A model that is ready as it is has no base, and so no estimate of gold.
    assert unlearn(base, tmp_path, settings, removal=removal, trained=None) == 0
    stored = load_file(tmp_path / "trained.safetensors")
    assert stored.keys() == {f"edit.{name}" for name in tensors | {"strength", "temperature"}}
    counts = {"removed": 3, "steps": 0, "trained_parameters": 0, "temperature": 1.0, **changes}
    assert read_json(tmp_path / "card.json").items() >= (counts | {"gold_rise": None}).items()
    assert len(read_table(tmp_path / "log.parquet", schemas.UNLEARN_LOG)) == 0
    assert unlearn(base, tmp_path, settings, removal=removal) == 0
    card = read_json(tmp_path / "card.json")
    assert card["forget_rise"] <= card["gold_rise"] or card["strength"] == 0


def test_an_arm_is_its_start_with_what_unlearning_trained_over_it(
    base: Path, tmp_path: Path
) -> None:
    """Every stage that asks an arm opens it so, and says of which files its answer is."""
    out = tmp_path / "out"
    assert unlearn(base, out, removal=names(tmp_path / "list.txt", ["if1", "if4"])) == 0
    unlearned = out / "trained.safetensors"
    whole = opened(base / "card.json", base / "start.safetensors")
    parameters.freeze(whole, training_of(TRAINS | ENDS_FROZEN))
    trained = {name for name, value in whole.named_parameters() if value.requires_grad}
    assert load_file(unlearned).keys() == trained < load_file(base / "start.safetensors").keys()
    start = measure(base, tmp_path, trained=base / "start.safetensors")
    assert perplexities(base, out) != start
    for stage, (question, kind) in ASKED.items():
        answers = []
        for name, files in (("start", {}), ("arm", {"unlearned": unlearned})):
            read = texts_of(base) if stage == "relearn" else {"model_card": base / "card.json"}
            read |= {"trained": base / "start.safetensors", **files}
            answer = tmp_path / f"{stage}-{name}"
            written = {"out": answer}
            if stage == "relearn":
                written["texts"] = tmp_path / "texts"
            assert main(command(stage, {**START, **question}, **read, **written)) == 0
            assert read_metadata(answer)["inputs"].keys() == read.keys()
            answers.append(read_table(answer, kind).to_pydict())
        assert answers[0] != answers[1]
        if stage == "relearn":
            first = [answers[1][f"ppl_{domain}"][0] for domain in ("forget", "retain")]
            assert first == pytest.approx(perplexities(base, out), rel=1e-6)


@pytest.mark.parametrize("blocks", [2, 4])
def test_the_zero_of_the_scale_is_the_very_model_that_unlearning_starts_from(
    blocks: int, base: Path, tmp_path: Path
) -> None:
    """A budget of less than one text has an empty list, which leaves the model as it is. Recovery
    is measured from what is said of the start, which has trained three blocks, the embedding and
    the head: none of them may be rounded before unlearning."""
    start = {"precision": "bf16"}
    settings = unlearning(**start, trained_blocks=blocks)
    out, removal = tmp_path / "out", listed(tmp_path / "removals.parquet", base, [])
    assert unlearn(base, out, settings, removal=removal) == 0
    card = read_json(out / "card.json")
    assert (card["removed"], card["steps"], card["stopped_at"]) == (0, 0, None)
    assert len(read_table(out / "log.parquet", schemas.UNLEARN_LOG)) == 0
    both = {"trained": base / "start.safetensors", "unlearned": out / "trained.safetensors"}
    zero = measure(base, out, start, **both)
    assert zero == measure(base, tmp_path, start, trained=base / "start.safetensors")
