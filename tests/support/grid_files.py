"""A small results folder with made-up perplexities, as a finished run would leave it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.tables import write_table
from tests.support.score_files import write_scores

GRID: dict[str, Any] = {
    "datasets": ["alpha", "beta"],
    "models": ["small", "large", "odd_one"],
    "seeds": [0, 1, 2],
    "budgets": [0.5, 0.1],
    "selectors": ["random", "mamushi", "my_own"],
}
N_FORGET = 40


def levels(run: Mapping[str, Any], selector: str, beta: float) -> tuple[float, float]:
    """Forget perplexity climbs from 20 to 60 (+ seed), retain perplexity falls from 12 to 10."""
    speed = {"mamushi": 0.5, "random": 1.0}.get(selector, 1.5)
    done = beta**speed
    return 20 + (40 + run["seed"]) * done, 12 - 2 * done


def write_perplexity(path: Path, forget: float, retain: float) -> None:
    """One ``perplexity`` artifact."""
    write_table(
        path,
        schemas.PERPLEXITY,
        {
            "domain": ["forget", "retain"],
            "texts": [5, 5],
            "tokens": [50, 50],
            "nll": [math.log(forget), math.log(retain)],
            "perplexity": [forget, retain],
        },
    )


def write_results(root: Path, grid: Mapping[str, Any]) -> None:
    """All that the stage ``tables`` reads for a grid."""
    for run in cells(grid):
        for endpoint, beta in (("beta0", 0.0), ("gold", 1.0)):
            path = paths.under(root, paths.PERPLEXITY, **run, arm=endpoint)
            write_perplexity(path, *levels(run, "", beta))
        for selector in grid["selectors"]:
            ids, domain = map(str, range(N_FORGET + 1)), ["forget"] * N_FORGET + ["retain"]
            write_scores(
                *(paths.under(root, paths.SCORES, **run, selector=selector), [*ids], domain),
                score=[-float(i) for i in range(N_FORGET + 1)],
            )
            for budget in grid["budgets"]:
                arm = {**run, "arm": arms.retrained_arm(selector, budget)}
                write_perplexity(
                    paths.under(root, paths.PERPLEXITY, **arm), *levels(run, selector, budget)
                )
