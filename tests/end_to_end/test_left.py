"""The target `left` on a small grid: what each attack says of each model, and which are kept."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths
from mamushi.io.tables import read_table
from mamushi_extras.left.schemas import MEMBERSHIP
from tests.support import small_grid
from tests.support.small_grid import DATASET, MODEL, UNLEARNER
from tests.support.workflow import run

pytestmark = pytest.mark.slow

SEEDS = [0, 1, 2]
RUN = {"dataset": DATASET, "model": MODEL, "seed": 0}


def config() -> dict[str, Any]:
    found = deepcopy(small_grid.CONFIG)
    one = {"seeds": SEEDS, "selectors": ["random"]}
    found["grid"] |= one
    found["unlearning"] |= one
    found["models"][MODEL]["pretraining"]["domains"] = ["retain"]
    found["training"] |= {"epochs": 4, "batch_size": 16, "learning_rate": 3.0e-3}
    found["unlearners"][UNLEARNER]["training"] = {"epochs": 1}
    found["left"] = {"selectors": ["random"], "budgets": [0.75], "unlearners": [UNLEARNER]}
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("left")
    run("left", directory=made, config=config())
    return made


def rows(folder: Path, **columns: Any) -> list[dict[str, Any]]:
    table = folder / paths.TABLE.format(table="membership")
    found = read_table(table, MEMBERSHIP).to_pylist()
    return [row for row in found if all(row[key] == value for key, value in columns.items())]


def test_unlearning_leaves_more_than_retraining(folder: Path) -> None:
    """The domain was learned hard, and one unlearning of few steps takes little of it back."""
    for attack in ("loss", "reference", "likelihood_ratio"):
        columns = {"attack": attack, "measure": "auc", "members": "removed"}
        (retrained,) = rows(folder, method="retraining", **columns)
        (unlearned,) = rows(folder, method=UNLEARNER, **columns)
        assert unlearned["value"] >= retrained["value"]


def test_models_that_were_looked_at_are_let_go_and_not_missed(folder: Path) -> None:
    for model in ("retrained", UNLEARNER):
        at = {**RUN, "arm": f"{model}/random/beta0.75"}
        assert (folder / paths.MEMBERSHIP.format(**at)).is_file()
        assert not (folder / paths.TRAINED.format(**at)).exists()
    assert (folder / paths.TABLE_CSV.format(table="membership")).is_file()
    again = run("left", "-n", directory=folder, config=config()).stdout
    assert "Nothing to be done" in again
