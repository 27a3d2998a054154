"""The whole workflow with models of other architectures: GPT-2, which has layer norms and fewer
positions than the texts have tokens, trained in fp32 and embedded in bf16. The stages see all of
them in tests/unit/stages/test_architectures.py."""

from pathlib import Path

import pytest

from mamushi.io import paths, schemas
from mamushi.io.tables import read_table
from mamushi.lm import tiny
from tests.support.families import FAMILIES, of_kind
from tests.support.small_grid import CONFIG, DATASET
from tests.support.workflow import run

POSITIONS = 14


@pytest.mark.slow
def test_a_grid_of_gpt2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, options = FAMILIES["gpt2"]
    words = [f"word{number} of a text" for number in range(200)]
    tokenizer = tiny.train_tokenizer(tiny.FAMILIES["llama"], words, 300)
    sizes = {**options, "n_positions": POSITIONS, "vocab_size": len(tokenizer)}
    of_kind(kind, sizes).save_pretrained(tmp_path / "small")
    tokenizer.save_pretrained(tmp_path / "small")
    axes = {"models": ["small"], "budgets": [0.25]}
    config = {
        **CONFIG,
        "grid": {**CONFIG["grid"], **axes, "selectors": ["lr_cos"]},
        "unlearning": {**CONFIG["unlearning"], **axes, "trained_blocks": 1, "max_length": None}
        | {"unlearners": ["neggrad_plus", "logit_bias"]},
        "models": {"small": {"source": str(tmp_path / "small")}},
        "training": {"epochs": 1, "batch_size": 4, "precision": "fp32", "trained_blocks": 1},
        "extends": None,
    }
    # What no key says is cut where the model ends.
    for key in ("tokens", "embedding", "evaluation"):
        config.pop(key)
    run("all", "results/tables/half_gap.csv", directory=tmp_path / "run", config=config)
    monkeypatch.chdir(tmp_path / "run")
    tokens = read_table(paths.TOKENS.format(dataset=DATASET, model="small"), schemas.TOKENS)
    assert max(map(len, tokens["tokens"].to_pylist())) == POSITIONS
    gap = read_table("results/tables/half_gap.parquet", schemas.HALF_GAP)
    assert {"neggrad_plus", "logit_bias"} <= {*gap["unlearner"].to_pylist()}
