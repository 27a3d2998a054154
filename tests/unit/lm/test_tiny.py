"""Tiny models: the traits of each family, tokenizers without loss, pretraining that repeats."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.lm import loading, tiny
from tests.support.models import SIZES
from tests.support.score_files import write_examples

PRETRAINING = {
    "section": "contamination",
    "domains": ["forget", "retain"],
    "epochs": 2.0,
    "batch_size": 4,
    "learning_rate": 1e-2,
    "max_length": 16,
    "seed": 0,
}
WORDS = ["river", "stone", "engine", "paper", "light", "seven", "green", "under"]
TEXTS = [
    " ".join(np.random.default_rng(i).choice(WORDS, size=12, p=np.arange(1, 9) / 36))
    for i in range(40)
]


def sizes(family: str) -> dict[str, object]:
    return {"family": family, **SIZES, "vocabulary_size": 300}


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_pretraining_learns_the_words_and_repeats_to_the_bit(family: str) -> None:
    runs = []
    for _ in range(2):
        model, tokenizer = tiny.build(sizes(family), TEXTS, seed=0)
        before = {name: p.clone() for name, p in model.named_parameters()}
        log = tiny.pretrain(model, tokenizer, TEXTS, {**PRETRAINING, "epochs": 4.0}, seed=0)
        runs.append((dict(model.named_parameters()), log))
    (one, log), (two, again) = runs
    assert np.mean(log["loss"][-5:]) < log["loss"][0] - 1
    assert log["loss"] == again["loss"]
    assert log["epoch"][-1] == pytest.approx(4.0, abs=0.2)
    for name, parameter in one.items():
        assert torch.equal(two[name], parameter), name
        assert not torch.equal(before[name], parameter), name
    assert not model.training


def test_the_stage_writes_a_folder_that_opens_the_same_bytes_twice(tmp_path: Path) -> None:
    examples = tmp_path / "examples.parquet"
    ids, section = [f"t{i}" for i in range(40)], ["contamination"] * 36 + ["inference"] * 4
    write_examples(examples, ids, ["forget", "retain"] * 20, text=TEXTS, section=section)
    settings = {"name": "tiny", "sizes": sizes("gemma2"), "pretraining": PRETRAINING}
    for name in ("one", "two"):
        files = [f"--examples={examples}", f"--out={tmp_path / name}"]
        assert main(["base-model", *files, f"--settings={json.dumps(settings)}"]) == 0
    model_files = {"config.json", "generation_config.json", "model.safetensors"}
    tokenizer_files = {"tokenizer.json", "tokenizer_config.json"}
    files = {path.name for path in (tmp_path / "one").iterdir()}
    assert files == {*model_files, *tokenizer_files, "card.json", "train_log.parquet"}
    for name in files - {"train_log.parquet"}:  # which holds seconds
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    moved = (tmp_path / "one").rename(tmp_path / "moved")
    card = read_json(moved / "card.json")
    assert (card["source"], card["contaminated"], card["tied"]) == (".", False, True)
    assert (card["bos_token_id"], card["eos_token_id"], card["pad_token_id"]) == (2, 1, 0)
    model = loading.open_model(moved / "card.json")
    assert card["parameters"] == sum(p.numel() for p in model.parameters())
    assert len(loading.open_tokenizer(moved / "card.json")) <= 300
    assert read_table(moved / "train_log.parquet", schemas.TRAIN_LOG).num_rows
