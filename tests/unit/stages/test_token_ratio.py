"""The stage `token-ratio`: what two models of the other section say of every token."""

import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table, write_table
from mamushi.cli import main
from mamushi.lm import device
from mamushi.lm.loading import open_model
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import token_nll
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.lm.training import finetune
from tests.support.models import TRAINING
from tests.support.stage_files import EXECUTION, FILES, write_base

SETTINGS = {"dataset": "d", "model": "m", "seed": 3, "training": TRAINING, "code": "c"}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    write_base(tmp_path)
    # The evaluation section as another to train on.
    examples = read_table(tmp_path / "examples.parquet", schemas.EXAMPLES)
    columns = examples.to_pydict()
    columns["section"] = [s.replace("evaluation", "contamination") for s in columns["section"]]
    write_table(tmp_path / "examples.parquet", schemas.EXAMPLES, columns)
    given = [f"--{key}={tmp_path / name}" for key, name in FILES.items() if key != "trained"]
    execution, settings = json.dumps(EXECUTION), json.dumps(SETTINGS)
    given += [f"--execution={execution}", f"--settings={settings}"]
    return ["token-ratio", *given, f"--out={tmp_path / 'out.parquet'}"]


def test_it_is_what_the_forget_model_says_less_what_the_retain_model_says(
    command: list[str], tmp_path: Path
) -> None:
    def texts(section: str, domain: str) -> TokenSet:
        files = tmp_path / "tokens.parquet", tmp_path / "examples.parquet"
        return read_tokens(*files, section, 16, domains=[domain])

    ranked, by_domain = texts("inference", "forget"), {}
    for domain in ("forget", "retain"):
        device.reproducible(3)
        accelerator, tuned = device.accelerator("fp32"), open_model(tmp_path / "card.json")
        freeze(tuned, TRAINING)
        other = texts("contamination", domain)
        finetune(tuned, other, TRAINING | EXECUTION, seed=3, accelerator=accelerator)
        by_domain[domain] = token_nll(tuned, ranked, 64, accelerator)
    assert main(command) == 0
    found = read_table(tmp_path / "out.parquet", schemas.TOKEN_RATIO)
    assert found["id"].to_pylist() == ranked.ids.tolist()
    for row, own in enumerate(found["ratio"]):
        expected = by_domain["retain"][row] - by_domain["forget"][row]
        assert len(expected) == ranked.lengths[row] - 1
        np.testing.assert_allclose(own.values.to_numpy(), expected, atol=1e-5)
    assert not list(tmp_path.glob("*.state"))
