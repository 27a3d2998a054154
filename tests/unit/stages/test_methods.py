"""The stages by the methods `lora` and `full`: from a fine-tune over unlearning to a folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import EVALUATION, read_table
from mamushi.lm import device, folders, loading, parameters
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import read_tokens
from tests.support.models import ADAPTERS, PARTS, TRAINING
from tests.support.stage_files import EXECUTION, FILES, write_base
from tests.support.unlearning import LOOP

METHODS: dict[str, dict[str, Any]] = {
    "lora": {"method": "lora", "lora": ADAPTERS},
    "full": {"method": "full"},
}
CELL = {"dataset": "d", "model": "m", "seed": 0}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stage(name: str, read: dict[str, str], written: dict[str, str], settings: Any) -> None:
    words = [f"--{key}={value}" for key, value in (read | written).items()]
    given = [f"--execution={json.dumps(EXECUTION)}", f"--settings={json.dumps(settings)}"]
    assert main([name, *words, *given]) == 0


UNLEARNING = {
    **CELL,
    "unlearner": "neggrad_plus",
    "kind": "neggrad_plus",
    "settings": {"learning_rate": 1e-3, "beta_ng": 0.5, "stop_forget_loss": None},
    "training": LOOP,
    "trained_blocks": 2,
    "max_length": 12,
    "evaluation": {"max_length": 16},
}


@pytest.mark.parametrize("method", METHODS)
def test_from_a_fine_tune_over_unlearning_to_a_folder(method: str, made: Path) -> None:
    how, texts = METHODS[method], {key: FILES[key] for key in ("examples", "tokens", "model-card")}
    training = {**TRAINING, **how}
    tuned = {**CELL, "section": "inference", "domains": ["forget", "retain"], "training": training}
    stage(
        "finetune",
        texts,
        {"tensors": "beta0.safetensors", "log-table": "beta0.parquet", "card": "beta0.json"},
        {**tuned, "role": "beta0"},
    )
    stored = load_file(made / "beta0.safetensors")
    base = dict(loading.open_model(made / "card.json").named_parameters())
    assert (
        all(map(parameters.is_adapter, stored))
        if method == "lora"
        else stored.keys() == base.keys()
    )
    card = read_json(made / "beta0.json")
    assert card["trained_parameters"] == sum(tensor.numel() for tensor in stored.values())

    # What embeds is what was trained.
    trained = {"training": {**PARTS, **how}, "precision": "fp32"}
    pooled = {"pooling": "mean", "skip_bos": True, "layer": -1, "max_length": 16}
    vectors = []
    for opened, tensors in ((trained, {"trained": "beta0.safetensors"}), ({"training": None}, {})):
        settings = {"embedding": {**pooled, "precision": "fp32"}, "training": opened["training"]}
        stage("embed", {**texts, **tensors}, {"out": "vectors.parquet"}, settings)
        vectors.append(read_table(made / "vectors.parquet", schemas.EMBEDDINGS)["embedding"])
    first, second = (np.array(column.to_pylist(), dtype=float) for column in vectors)
    assert np.abs(first - second).max() > 1e-2

    written = {"perplexity": "after.parquet", "log-table": "log.parquet", "card": "after.json"}
    stage(
        "unlearn",
        {**texts, "trained": "beta0.safetensors"},
        {**written, "tensors": "after.safetensors", "trunk": "trunk.safetensors"},
        {**UNLEARNING, "start": trained, **how},
    )
    # All blocks are trained, so that no output of frozen ones could be kept.
    assert not (made / "trunk.safetensors").exists()
    assert load_file(made / "after.safetensors").keys() == stored.keys()

    words = ["export", "--model-card=card.json", "--out=whole"]
    assert main([*words, "--trained", "beta0.safetensors", "after.safetensors"]) == 0
    whole = folders.read_model(made / "whole")
    assert [*dict(whole.named_parameters())] == [*base]
    held_out = read_tokens(made / "tokens.parquet", made / "examples.parquet", EVALUATION, 16)
    nll = text_nll(whole, held_out, 64, device.accelerator("fp32"))
    found = perplexity_table(nll, held_out.domains)
    measured = read_table(made / "after.parquet", schemas.PERPLEXITY)
    assert found["perplexity"] == pytest.approx(measured["perplexity"].to_pylist(), rel=1e-5)


def test_unlearning_of_a_model_as_it_is_puts_new_adapters_beside_it(made: Path) -> None:
    texts = {key: FILES[key] for key in ("examples", "tokens", "model-card")}
    written = {"perplexity": "after.parquet", "log-table": "log.parquet", "card": "after.json"}
    settings = {
        **CELL,
        "unlearner": "salun",
        "kind": "salun",
        "settings": {
            "learning_rate": 1e-2,
            "forget_weight": 0.1,
            "retain_weight": 0.9,
            "sparsity": 0.5,
        },
        "training": LOOP,
        "start": {"training": None, "precision": "fp32"},
        "trained_blocks": 2,
        "max_length": 12,
        "evaluation": {"max_length": 16},
        **METHODS["lora"],
    }
    stage("unlearn", texts, {**written, "tensors": "after.safetensors"}, settings)
    stored = load_file(made / "after.safetensors")
    assert all(map(parameters.is_adapter, stored))
    moved = [name for name, value in stored.items() if "lora_B" in name and value.any()]
    assert moved
    assert (
        main(["export", "--model-card=card.json", "--out=whole", "--trained=after.safetensors"])
        == 0
    )
