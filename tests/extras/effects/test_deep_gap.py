"""What is recovered of the gap without word frequencies, and at which budget half of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mamushi.io.schemas import HALF_GAP, UNLEARNING
from mamushi_extras.effects.contrasts import NO_GAP
from mamushi_extras.effects.deep_gap import deep_curve, tables
from tests.support.unlearning_files import AXES, sweeps_of, write_runs

BETA = [0.0, 0.25, 0.5, 0.75, 1.0]
TRUE = 0.4
"""Where half of the deep gap is recovered."""
Doubles = NDArray[np.float64]


def deep_row(rng: np.random.Generator, seeds: int, gap: float = 0.2) -> dict[str, Any]:
    """The columns of models at ``BETA`` that recover in proportion, of texts that differ in how
    much they are of the domain, in seeds that differ in how much they learn of it."""
    n, tokens = 80, rng.integers(8, 30, 80).astype(float)
    opens = gap + 0.2 * rng.normal(size=n)

    def model(share: float) -> Doubles:
        learned = share + 0.03 * rng.normal(size=(seeds, 1))
        return (3 + learned * opens + 0.03 * rng.normal(size=(seeds, n))) * tokens

    start, gold = model(0.0), model(1.0)
    models = np.array([start, *(model(0.5 / TRUE * beta) for beta in BETA[1:])])
    return deep_curve(np.array(BETA), models, (start, gold), (tokens, None), 0.5)[1]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 4])
def test_the_interval_of_a_deep_budget_holds_the_truth(seeds: int) -> None:
    rng, covered, times = np.random.default_rng(seeds), 0, 100
    for _ in range(times):
        row = deep_row(rng, seeds)
        high = np.inf if row["deep_budget_high"] is None else row["deep_budget_high"]
        covered += row["deep_budget_low"] <= TRUE <= high
    assert covered >= 0.93 * times - 7  # three errors of 100 draws


def test_a_gap_that_chance_may_have_made_has_no_budget() -> None:
    assert deep_row(np.random.default_rng(1), 3, gap=0.0) == {"deep_withheld": NO_GAP}


def test_curves_from_files_have_their_deep_gap(tmp_path: Path) -> None:
    write_runs(tmp_path, AXES)
    settings: dict[str, Any] = {"sweeps": sweeps_of(AXES), "retain_cap": 5.6, "fine": None}
    made = tables(tmp_path, AXES, {"small": "beta0"}, 0.5, **settings)
    for row in made[UNLEARNING]:
        share = 1.0 if row["unlearner"] == "retraining" and row["beta"] == 1 else 0.6
        assert row["deep"] == pytest.approx(share * row["recovery"], abs=0.03)
    ours = made[HALF_GAP][-1]
    assert (ours["unlearner"], ours["selector"]) == ("neggrad_plus", "mamushi")
    # 0.456 of it at a budget of 0.5, and 0.6 at 1.
    assert ours["deep_budget"] == pytest.approx(0.5 + 0.5 * 0.044 / 0.144, abs=0.05)
    assert ours["deep_budget_low"] < ours["deep_budget"] < ours["deep_budget_high"]
    assert (ours["deep_censored"], ours["deep_withheld"]) == (False, None)
