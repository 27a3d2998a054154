"""Rankings by influence and by cross-entropies, through all that follows from a ranking."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mamushi.config import arms
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi_extras.effects.schemas import EFFECTS
from tests.support import small_grid
from tests.support.small_grid import DATASET, MODEL, UNLEARNER
from tests.support.workflow import run

pytestmark = pytest.mark.slow

SELECTORS = ["influence", "token_influence", "cross_entropy", "token_cross_entropy"]
CELL = {"dataset": DATASET, "model": MODEL, "seed": 0, "beta": "0.25"}


def config() -> dict[str, Any]:
    found = deepcopy(small_grid.CONFIG)
    found["grid"] |= {"budgets": [0.25], "selectors": ["random", *SELECTORS]}
    frozen = {"train_input_embedding": False, "train_output_head": False, "steps": "aligned"}
    found["training"] |= {"epochs": 1, "batch_size": 16, "learning_rate": 3.0e-3, **frozen}
    found["evidence"] = {"refits": {"whole": 1}}
    found["unlearning"] |= {"selectors": SELECTORS, "budgets": [0.25]}
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("influence")
    ranking = paths.RANKING.format(**CELL)
    half_gap = paths.TABLE.format(table="half_gap")
    run("all", ranking, half_gap, directory=made, config=config())
    return made


def test_both_are_retrained_without_and_measured(folder: Path) -> None:
    table = read_table(folder / paths.TABLE.format(table="effects"), EFFECTS).to_pylist()
    assert {row["selector"] for row in table} == set(config()["grid"]["selectors"])
    assert all(row["recovered"] is not None for row in table)
    # Nothing of what saves time or goes on is left.
    left = [*(folder / "results/runs").rglob("*.parquet.*")]
    assert left == [] and (folder / paths.CROSS_ENTROPY.format(**CELL)).is_file()


@pytest.mark.parametrize("selector", SELECTORS[1::2])
def test_tokens_are_unlearned_as_texts_are(selector: str, folder: Path) -> None:
    table = read_table(folder / paths.TABLE.format(table="half_gap"), schemas.HALF_GAP).to_pylist()
    assert {(row["unlearner"], row["selector"]) for row in table} == {
        (unlearner, selector) for unlearner in ("retraining", UNLEARNER) for selector in SELECTORS
    }
    rows = read_table(folder / paths.SPANS.format(**CELL, selector=selector), schemas.SPANS)
    arm = arms.unlearned_arm(UNLEARNER, selector, CELL["beta"])
    card = read_json(folder / paths.CARD.format(**CELL, arm=arm))
    # As many tokens as in the spans, of all texts that have any, and those are forget texts.
    spans = rows.to_pylist()
    examples = read_table(folder / paths.EXAMPLES.format(**CELL), schemas.EXAMPLES).to_pylist()
    domains = {row["id"]: row["domain"] for row in examples}
    assert {domains[row["id"]] for row in spans} == {"forget"}
    assert card["tokens"] == sum(row["stop"] - row["start"] for row in spans)
    assert card["removed"] == len({row["id"] for row in spans})
    assert "spans" in card["inputs"] and "removal" not in card["inputs"]
