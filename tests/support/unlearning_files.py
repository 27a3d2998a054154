"""A results folder with made-up unlearning runs, as a finished sweep would leave it."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import write_table
from tests.support.grid_files import write_perplexity
from tests.support.score_files import write_examples

AXES: dict[str, Any] = {
    "datasets": ["alpha"],
    "models": ["small"],
    "seeds": [0, 1, 2],
    "budgets": [0.5, 0.25],
    "selectors": ["random", "mamushi"],
    "unlearners": ["neggrad_plus"],
}
N_FORGET, N_RETAIN = 40, 80
START, GOLD, CONTAMINATED = (20.0, 10.0), (60.0, 12.0), (10.0, 9.0)
"""Forget and retain perplexity of beta 0, the gold standard and the contaminated model."""

Height = Callable[[Mapping[str, Any], str, str, float], float]
"""(run, unlearner, selector, beta) -> recovered share of the gap between beta 0 and gold."""


def heights(run: Mapping[str, Any], unlearner: str, selector: str, beta: float) -> float:
    """Random recovers in proportion, mamushi twice as fast at first; the seed adds a hundredth."""
    if beta == 1:
        return 1.0
    return beta * (1.5 if selector == "mamushi" else 1.0) + 0.01 * run["seed"]


RAKED, TOKENS, DEEP_GAP = 40, 10, 0.4
"""Held-out forget texts, their tokens, and the nats per token that word frequencies leave."""


def write_texts(root: Path, run: Mapping[str, Any], arm: str, deep: float | None) -> None:
    """What a model makes of each held-out text: it has recovered a share of the deep gap."""
    ids = [f"t{n:02d}" for n in range(RAKED)]
    path = paths.under(root, paths.EXAMPLES, dataset=run["dataset"])
    section = ["evaluation"] * RAKED
    write_examples(path, ids, ["forget"] * RAKED, text=["w w"] * RAKED, section=section)
    noise = np.random.default_rng([run["seed"], *arm.encode()]).normal(size=RAKED)
    raked = [None] * RAKED
    if deep is not None:
        raked = (TOKENS * (2 + DEEP_GAP * deep + 0.01 * noise)).tolist()
    columns = {"id": ids, "tokens": [TOKENS] * RAKED, "nll": [1.0] * RAKED, "deep": raked}
    write_table(paths.under(root, paths.NLL, **run, arm=arm), schemas.NLL, columns)


def write_runs(
    root: Path,
    axes: Mapping[str, Any],
    height: Height = heights,
    added: tuple[float, ...] = (),
    stopped_at: int | None = None,
    deep: float | None = 0.6,
) -> None:
    """All that the table ``half_gap`` is made of, at budgets that are ``added`` as well.

    A run at budget b has retain perplexity 10 + 40 b, and takes 100 b steps. Of the ``deep`` gap it
    has recovered that part of its share of the whole gap, and gold all; None: it is not measured.
    """

    def level(share: float, beta: float) -> tuple[float, float]:
        return START[0] + share * (GOLD[0] - START[0]), START[1] + 40 * beta

    def write(run: Mapping[str, Any], arm: str, ends: tuple[float, float], card: Any) -> None:
        share = (ends[0] - START[0]) / (GOLD[0] - START[0])
        part = 1.0 if arm == "gold" else deep
        write_texts(root, run, arm, None if deep is None else part * share)
        write_perplexity(paths.under(root, paths.PERPLEXITY, **run, arm=arm), *ends)
        write_json(paths.under(root, paths.CARD, **run, arm=arm), card)

    for run in cells(axes):
        for endpoint, ends in (("beta0", START), ("gold", GOLD), ("contaminated", CONTAMINATED)):
            texts = N_RETAIN + (0 if endpoint == "gold" else N_FORGET)
            write(run, endpoint, ends, {"texts": texts, "removed": 0, "steps": texts * 2})
        for selector in axes["selectors"]:
            for beta in axes["budgets"]:
                removed = int(beta * N_FORGET)
                card = {"removed": removed, "steps": (N_FORGET + N_RETAIN - removed) * 2}
                ends = level(height(run, "retraining", selector, beta), beta)
                write(run, arms.retrained_arm(selector, beta), ends, card)
            for unlearner in axes["unlearners"]:
                budgets = sorted([*axes["budgets"], *added])
                for beta in budgets:
                    card = {"removed": int(beta * N_FORGET), "steps": int(beta * 100)}
                    ends = level(height(run, unlearner, selector, beta), beta)
                    arm = arms.unlearned_arm(unlearner, selector, beta)
                    write(run, arm, ends, card | {"stopped_at": stopped_at})
        for unlearner in axes["unlearners"]:
            whole = {"removed": N_FORGET, "steps": 100, "stopped_at": None}
            write(run, f"{unlearner}/whole", level(height(run, unlearner, "", 1.0), 1.0), whole)


def sweeps_of(axes: Mapping[str, Any], added: tuple[float, ...] = ()) -> list[dict[str, Any]]:
    """The pairs of unlearner and selector with their budgets, as settings of that table."""
    names = ("dataset", "model", "unlearner", "selector")
    pairs = itertools.product(*(axes[f"{name}s"] for name in names))
    budgets = sorted([*axes["budgets"], *added])
    return [dict(zip(names, pair, strict=True)) | {"budgets": budgets} for pair in pairs]
