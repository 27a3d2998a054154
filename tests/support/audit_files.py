"""A results folder with made-up likelihoods, as the target `left` would leave it.

40 ranked forget texts and 120 held-out ones. The log-likelihood of a text that a model has seen is
higher by ``MEMORY`` per token.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.tables import write_table
from mamushi_extras.left.schemas import LIKELIHOODS
from tests.support.score_files import unknown_texts

AXES: dict[str, Any] = {
    "datasets": ["alpha"],
    "models": ["small"],
    "seeds": [0, 1, 2],
    "selectors": ["random"],
    "budgets": [0.5],
    "unlearners": ["neggrad_plus"],
}
RANKED, HELD, TOKENS, MEMORY, NOISE = 40, 120, 10, 1.0, 0.05
IDS = [f"i{n:02d}" for n in range(RANKED)] + [f"e{n:03d}" for n in range(HELD)]


def removed(seed: int) -> set[str]:
    """Another half for each seed."""
    order = np.random.default_rng(seed).permutation(RANKED)
    return {IDS[i] for i in order[: RANKED // 2]}


def memory(name: str, seed: int) -> Mapping[str, float]:
    """How much of each text a model remembers: all it was trained on, half of what it unlearned."""
    gone = removed(seed)
    whole = dict.fromkeys(IDS[:RANKED], 1.0)
    return {
        "base": {},
        "gold": {},
        "beta0": whole,
        "contaminated": whole,
        "retraining": {k: 1.0 for k in whole if k not in gone},
        "neggrad_plus": {k: 0.5 if k in gone else 1.0 for k in whole},
    }[name]


def write_model(root: Path, name: str, at: Mapping[str, Any], arm: str) -> None:
    """What one model makes of all texts."""
    kept = memory(name, at["seed"])
    noise = np.random.default_rng([at["seed"], *name.encode()]).normal(0, NOISE, len(IDS))
    hard = np.random.default_rng(99).normal(-4, 1, len(IDS))
    mean = hard + MEMORY * np.array([kept.get(k, 0.0) for k in IDS]) + noise
    columns = {
        "id": IDS,
        "section": ["inference"] * RANKED + ["evaluation"] * HELD,
        "tokens": [TOKENS] * len(IDS),
        "nll": -mean * TOKENS,
    }
    path = paths.under(root, paths.MEMBERSHIP, **at, arm=arm)
    write_table(path, LIKELIHOODS, columns)


def write_all(root: Path, axes: Mapping[str, Any] = AXES) -> None:
    for cell in cells(axes):
        for name in ("base", "gold", "beta0", "contaminated"):
            if name != "base" or cell["seed"] == axes["seeds"][0]:
                write_model(root, name, cell, name)
        for selector in axes["selectors"]:
            for beta in map(paths.beta, axes["budgets"]):
                listed = {"selector": selector, "beta": beta}
                write_model(root, "retraining", cell, arms.retrained(selector, beta))
                for name in axes["unlearners"]:
                    write_model(root, name, cell, arms.unlearned(name, selector, beta))
                ids = sorted(removed(cell["seed"]))
                columns = {"id": ids, "score": [0.0] * len(ids), "rank": range(len(ids))}
                columns |= unknown_texts(len(ids))
                write_table(
                    paths.under(root, paths.REMOVAL, **cell, **listed), schemas.REMOVALS, columns
                )
