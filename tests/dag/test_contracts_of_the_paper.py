"""On the paper's grid, all of it done: what a change of config.yaml as it stands runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.contracts import jobs, together
from tests.support.dry_runs import Snakemake
from tests.support.outcomes import listed
from tests.support.workflow import ROOT

pytestmark = pytest.mark.slow

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
DRAWN = "tables 1, figure_sad 1, figure_perplexity 1"
EVERYTHING = f"""
    examples 2, model_card 3, tokens 6, contaminate 30, gold 30, beta0 30, embed 30, score 240,
    calibrate 30, remove 2160, stability 240, manifests 240, retrain 2160, evaluate 60, {DRAWN}
"""
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "a budget": (
        {"grid": {"budgets": [*PAPER["grid"]["budgets"], 0.95]}},
        f"remove 240, {listed(240)}, retrain 240, {DRAWN}",
    ),
    "the setting of the selector that estimates the ratio": (
        {"selectors": {"mamushi": {"alpha": 0.2}}},
        f"""
        score 30, calibrate 30, remove 270, stability 30, manifests 240, retrain 270, {DRAWN}
        """,
    ),
    "a seed": (
        {"grid": {"seeds": [*PAPER["grid"]["seeds"], 5]}},
        f"""
        contaminate 6, gold 6, beta0 6, embed 6, score 48, calibrate 6, remove 432, {listed(48)},
        retrain 432, evaluate 12, {DRAWN}
        """,
    ),
    "the learning rate": (
        {"training": {"learning_rate": 2e-5}},
        f"""
        contaminate 30, gold 30, beta0 30, embed 30, score 240, calibrate 30, remove 2160,
        {listed(240)}, retrain 2160, evaluate 60, {DRAWN}
        """,
    ),
}
OF: dict[str, tuple[str, set[str]]] = {
    # change -> a wildcard, and its values in all jobs that have it
    "a budget": ("beta", {"0.95"}),
    "a selector's setting": ("selector", {"kcenter"}),
    "a seed": ("seed", {"5"}),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which the paper's grid is done."""
    folder = tmp_path_factory.mktemp("paper")
    assert together(snakemake.finish(folder)) == jobs(EVERYTHING)
    return folder


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_runs_what_it_affects(snakemake: Snakemake, finished: Path, name: str) -> None:
    change, outcome = CHANGES[name]
    seen = snakemake.look(finished, change=change)
    assert together(seen["needed"]) == jobs(outcome)
    assert seen["blind"] == {}
    if name in OF:
        wildcard, values = OF[name]
        assert {having[wildcard] for _, having in seen["runs"] if wildcard in having} == values
