"""The Sum of Absolute Distances (SAD) to the gold-standard model, and what it is made of.

Paper, equation "sad", of the model retrained after removing a share beta of the forget set:
SAD_beta = |PPL_(beta,forget) - PPL_(1,forget)| + |PPL_(beta,retain) - PPL_(1,retain)|

It is a distance, no loss. Of two models that are below gold in both domains, gold cancels:
SAD_a - SAD_b = -(change of PPL_forget + change of PPL_retain), so that the one that predicts retain
texts better is charged for it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.intervals import Floats
from mamushi.io import paths, schemas
from mamushi.io.domains import DOMAINS
from mamushi.io.tables import read_table

GridLists = Mapping[str, Any]
"""Lists ``datasets, models, seeds, budgets, selectors`` of the configuration; ``unlearners``, too,
where models are unlearned."""
Curve = list[Mapping[str, Any]]  # Rows of one seed and selector, by increasing beta.
BASELINE = "random"


def sad(
    ppl_forget: npt.ArrayLike,
    ppl_retain: npt.ArrayLike,
    gold_ppl_forget: npt.ArrayLike,
    gold_ppl_retain: npt.ArrayLike,
) -> Floats:
    """Return SAD in units of perplexity; arguments broadcast. Of mean NLLs it is in nats per token,
    where one per cent of perplexity counts the same in both domains."""
    forget = np.abs(np.subtract(ppl_forget, gold_ppl_forget))
    retain = np.abs(np.subtract(ppl_retain, gold_ppl_retain))
    return np.asarray(forget + retain, dtype=np.float64)


def area(beta: npt.ArrayLike, height: npt.ArrayLike) -> float:
    """Return the area under a curve at increasing ``beta`` by the trapezoid rule over its width:
    the mean height. A curve of one point has its own height."""
    x, y = np.asarray(beta, dtype=np.float64), np.asarray(height, dtype=np.float64)
    return float(y[0]) if len(x) == 1 else float(np.trapezoid(y, x) / (x[-1] - x[0]))


def read_perplexity(path: str | Path) -> dict[str, float]:
    """Read one ``perplexity`` artifact: ``ppl_forget`` and ``ppl_retain``, and the mean NLL per
    token (nats) behind them, ``nll_forget`` and ``nll_retain``."""
    values = {}
    for row in read_table(path, schemas.PERPLEXITY).to_pylist():
        values[f"ppl_{row['domain']}"] = row["perplexity"]
        values[f"nll_{row['domain']}"] = row["nll"]
    return values


def read_arm(root: str | Path, cell: Mapping[str, Any], arm: str) -> dict[str, float]:
    """Read the perplexity of an arm of a cell, of gold, as ``gold_*``, and SAD."""
    at, gold = (
        read_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=name))
        for name in (arm, "gold")
    )
    row = at | {f"gold_{name}": value for name, value in gold.items()}
    for name, kind in (("sad", "ppl"), ("log_sad", "nll")):
        columns = [f"{kind}_{domain}" for domain in DOMAINS]
        row[name] = float(sad(*(of[column] for of in (at, gold) for column in columns)))
    return row


def curves_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[Curve]]:
    """Return the curves by dataset, model and selector, one per seed; in the order of the rows."""
    curves: dict[tuple[str, str, str], dict[int, Curve]] = {}
    for row in rows:
        seeds = curves.setdefault((row["dataset"], row["model"], row["selector"]), {})
        seeds.setdefault(row["seed"], []).append(row)
    return {
        key: [sorted(curve, key=lambda row: float(row["beta"])) for curve in seeds.values()]
        for key, seeds in curves.items()
    }
