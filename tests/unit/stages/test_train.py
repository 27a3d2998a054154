"""The stage `finetune`: what is trained on, what is stored of it, and how a killed one goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.domains import EVALUATION
from mamushi.io.files import read_json
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import device, perplexity, training
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import read_tokens
from tests.support.models import TRAINING
from tests.support.stage_files import (
    command,
    finetuning,
    listed,
    measure,
    measuring,
    texts_of,
    trained_files,
    write_base,
)
from tests.support.steps import kill_at

REMOVED = ["if0", "if1", "if2", "if3"]
ALIGNED = TRAINING | {"steps": "aligned"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, examples and tokens."""
    root = tmp_path_factory.mktemp("base")
    write_base(root)
    return root


def finetune(base: Path, out: Path, removed: Any = (), *, of: Any = None, **changes: Any) -> int:
    """Train without a removal list, as a selector would write it; ``of`` are more files."""
    files = {**texts_of(base), **trained_files(out), **(of or {})}
    files.setdefault("removal", listed(out.with_suffix(".list.parquet"), base, removed))
    return main(command("finetune", finetuning(**changes), **files))


def log(out: Path) -> Any:
    return read_table(out / "log.parquet", schemas.TRAIN_LOG).to_pydict()


def tensors(out: Path) -> dict[str, np.ndarray]:
    return {key: t.numpy() for key, t in load_file(out / "trained.safetensors").items()}


def assert_same_tensors(one: Path, another: Path) -> None:
    np.testing.assert_equal(tensors(one), tensors(another))


def test_what_is_stored_measures_as_the_model_in_memory(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit."""
    texts = read_tokens(base / "tokens.parquet", base / "examples.parquet", EVALUATION, 16)
    in_memory = []
    trained = training.minimize_nll

    def measured(model: Any, *args: Any, **options: Any) -> Any:
        curve = trained(model, *args, **options)
        accelerator = device.accelerator("fp32")
        in_memory.append(text_nll(model.eval(), texts, 64, accelerator))
        return curve

    monkeypatch.setattr(training, "minimize_nll", measured)
    out = tmp_path / "out"
    assert finetune(base, out, REMOVED) == 0
    opened = {"trained": out / "trained.safetensors"}
    perplexities = measure(base, tmp_path, **opened)
    table = read_table(tmp_path / "nll.parquet", schemas.NLL)
    assert table["id"].to_pylist() == [*texts.ids]
    assert table["nll"].to_pylist() == in_memory[0].nll.tolist()
    expected = perplexity_table(in_memory[0], texts.domains)
    assert perplexities == [*expected["perplexity"]]
    card = read_json(out / "card.json")
    assert card["trained_parameters"] == sum(value.size for value in tensors(out).values())
    assert (card["removed"], card["texts"]) == (4, 17)
    assert card["inputs"].keys() == {"examples", "tokens", "model_card", "removal"}
    assert read_metadata(out / "log.parquet")["settings"] == card["settings"]
    assert measure(base, tmp_path) != perplexities


def test_a_killed_training_goes_on_from_its_state(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finetune(base, tmp_path / "whole", REMOVED) == 0
    steps = len(log(tmp_path / "whole")["step"])
    calls, out = kill_at(monkeypatch, 4, UserError), tmp_path / "out"
    assert finetune(base, out, REMOVED) == 2
    assert (out / "card.json.state").exists() and not (out / "trained.safetensors").exists()
    assert finetune(base, out, REMOVED) == 0
    assert len(calls) == 4 + steps - 3
    assert_same_tensors(out, tmp_path / "whole")
    assert not (out / "card.json.state").exists()


def test_a_training_measures_its_model_as_the_stage_of_it_does(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that fails, Snakemake deletes what was trained, and the next attempt goes on."""
    calls, out = kill_at(monkeypatch, -1, UserError), tmp_path / "out"
    own = measuring(out)
    with monkeypatch.context() as broken:
        broken.setattr(perplexity, "text_nll", None)
        assert finetune(base, out, REMOVED, of=own) == 1
    for name in ("trained.safetensors", "card.json", "log.parquet"):
        (out / name).unlink()
    steps = len(calls)
    assert finetune(base, out, REMOVED, of=own) == 0
    assert len(calls) == steps and not (out / "card.json.state").exists()
    measure(base, out, trained=out / "trained.safetensors")
    for name in ("perplexity", "nll"):
        assert own[name].read_bytes() == (out / f"{name}.parquet").read_bytes()


def test_a_state_of_other_settings_is_not_gone_on_from(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 4, UserError)
    assert finetune(base, tmp_path / "out", REMOVED) == 2
    assert finetune(base, tmp_path / "out", REMOVED, seed=1) == 0
    assert finetune(base, tmp_path / "fresh", REMOVED, seed=1) == 0
    assert_same_tensors(tmp_path / "out", tmp_path / "fresh")


def test_aligned_arms_take_the_steps_of_beta_0(base: Path, tmp_path: Path) -> None:
    """Gold and a list: as many steps and passes, and fewer tokens in each."""
    aligned = ALIGNED | {"batch_size": 3, "epochs": 2}
    cards, logs = [], []
    arms: dict[str, Any] = {"beta0": ([], {}), "list": (REMOVED, {}), "gold": ([], ["retain"])}
    for name, (removed, domains) in arms.items():
        changes = {"domains": domains} if domains else {}
        assert finetune(base, tmp_path / name, removed, training=aligned, **changes) == 0
        cards.append(read_json(tmp_path / name / "card.json"))
        logs.append({key: np.array(column) for key, column in log(tmp_path / name).items()})
    assert len({card["steps"] for card in cards}) == 1
    assert len({card["texts"] for card in cards}) == 3
    for columns in logs[1:]:
        assert (columns["epoch"] == logs[0]["epoch"]).all()
        assert (columns["tokens"] <= logs[0]["tokens"]).all()
        assert columns["tokens"].sum() < logs[0]["tokens"].sum()


def test_a_step_without_a_text_is_taken_and_counts(base: Path, tmp_path: Path) -> None:
    aligned = ALIGNED | {"batch_size": 1, "epochs": 1}
    assert finetune(base, tmp_path / "out", REMOVED, training=aligned) == 0
    columns = log(tmp_path / "out")
    empty = [loss for loss, n in zip(columns["loss"], columns["tokens"], strict=True) if n == 0]
    assert empty == [0] * len(REMOVED)


def test_what_is_left_no_token_is_removed(base: Path, tmp_path: Path) -> None:
    """Spans of whole texts train what the list trains, in as many steps."""
    removed = REMOVED[:2]
    assert finetune(base, tmp_path / "listed", removed) == 0
    table = read_table(base / "tokens.parquet", schemas.TOKENS)
    length = dict(zip(table["id"].to_pylist(), map(len, table["tokens"]), strict=True))
    whole = {"id": removed, "start": [1, 1], "stop": [length[name] for name in removed]}
    write_table(tmp_path / "spans.parquet", schemas.SPANS, whole)
    spans = {"spans": tmp_path / "spans.parquet", "removal": None}
    assert finetune(base, tmp_path / "masked", of=spans) == 0
    assert_same_tensors(tmp_path / "masked", tmp_path / "listed")
    card = read_json(tmp_path / "masked" / "card.json")
    assert (card["texts"], card["mass"], card["removed"]) == (19, 19.0, 0)
