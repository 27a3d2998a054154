"""The Sum of Absolute Distances (SAD) to the gold-standard model, and the tables made of it.

Paper, equation "sad", of the model retrained after removing a share beta of the forget set:
SAD_beta = |PPL_(beta,forget) - PPL_(1,forget)| + |PPL_(beta,retain) - PPL_(1,retain)|

It is a distance, no loss. Of two models that are below gold in both domains, gold cancels:
SAD_a - SAD_b = -(change of PPL_forget + change of PPL_retain), so that the one that predicts retain
texts better is charged for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.evaluation.intervals import Floats, finite_or_none, standard_error
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.domains import DOMAINS
from mamushi.io.tables import read_metadata, read_table
from mamushi.selection.removals import budget_size

if TYPE_CHECKING:
    import pandas as pd

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


def tables(root: Path, grid: GridLists, ranked: Collection[str]) -> dict[Table, pa.Table]:
    """Return the tables of a grid, of whose selectors the ``ranked`` ones rank texts."""
    table = sad_table(grid, root, {*grid["selectors"]} - {*ranked})
    return {
        schemas.SAD: table,
        schemas.SAD_SUMMARY: sad_summary(table),
        schemas.SELECTION: selection_table({**grid, "selectors": ranked}, root),
    }


def sad_table(
    grid: GridLists, root: str | Path = "results", of_tokens: Collection[str] = ()
) -> pa.Table:
    """Return the table ``sad`` of a grid, some of whose selectors are ``of_tokens``: curves with
    both ends, beta 0 (nothing removed) and beta 1 (the gold standard, where SAD is 0)."""
    rows = []
    for run, selector in product(cells(grid), grid["selectors"]):
        # The lists follow from scores. Their manifests wait for refits, which nothing here needs.
        if selector in of_tokens:
            path = paths.under(root, paths.TOKEN_SCORES, **run, selector=selector)
            units = len(pc.list_flatten(read_table(path, schemas.TOKEN_SCORES)["score"]))
        else:
            path = paths.under(root, paths.SCORES, **run, selector=selector)
            units = int(pc.count(read_table(path, schemas.SCORES, ["rank"])["rank"]).as_py())
        between = {b: arms.retrained(selector, b) for b in sorted(grid["budgets"])}
        for beta, arm in {0.0: "beta0", **between, 1.0: "gold"}.items():
            row = {**run, "selector": selector, "beta": beta, "removed": budget_size(beta, units)}
            rows.append({**row, **read_arm(root, run, arm)})
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def selection_table(grid: GridLists, root: str | Path = "results") -> pa.Table:
    """Return a row per dataset, model, seed and selector, from what the scores' metadata say. Only
    cross-fitted selectors have folds, only synthetic data a truth, and some no retain scores."""
    rows = []
    for run, selector in product(cells(grid), grid["selectors"]):
        path = paths.under(root, paths.SCORES, **run, selector=selector)
        details = read_metadata(path)["details"]
        row = {**run, "selector": selector, "ties": details["ties"]}
        row |= {name: details.get(name) for name in ("auc", "spearman_with_truth")}
        if folds := details.get("per_fold"):
            areas, offsets = ([fold[name] for fold in folds] for name in ("auc", "offset"))
            row |= {"auc_fold_min": min(areas), "auc_fold_max": max(areas)}
            row["auc_fold_mean"] = sum(areas) / len(areas)
            row["fold_offset"] = max(offsets) - min(offsets)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.SELECTION.schema)


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


def sad_summary(table: pa.Table) -> pa.Table:
    """Return the table ``sad_summary``: a row per dataset, model, selector and beta.

    Areas belong to a whole curve and repeat on its rows. SAD is a sum of absolute values, which
    noise moves up near 0; the signed distances of each domain have no such bias.
    """
    rows, points = [], table.to_pandas()
    for domain in DOMAINS:
        points[f"{domain}_distance"] = points[f"ppl_{domain}"] - points[f"gold_ppl_{domain}"]
    for model, of_model in points.groupby(["dataset", "model"], sort=False):
        by_selector, between_golds = areas(of_model), gold_sad(of_model)
        for (selector, beta), at in of_model.groupby(["selector", "beta"], sort=False):
            row = {"dataset": model[0], "model": model[1], "selector": selector, "beta": beta}
            row |= {"removed": int(at.removed.iloc[0]), "seeds": len(at)}
            row |= {"gold_sad": between_golds, **_mean("area", by_selector[selector])}
            chance = by_selector.get(BASELINE)
            if chance is not None and chance.mean() != 0:
                # With the error of paired differences.
                relative = (by_selector[selector] - chance) / chance.mean()
                row |= _mean("area_vs_random", relative, mean="")
            for name in ("ppl_forget", "ppl_retain", "sad", "log_sad"):
                row |= _mean(name, at[name].to_numpy())
            for domain in DOMAINS:
                row |= _mean(f"{domain}_distance", at[f"{domain}_distance"].to_numpy())
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.SAD_SUMMARY.schema)


def _mean(name: str, values: Floats, mean: str = "_mean") -> dict[str, float | None]:
    error = finite_or_none(standard_error(values))
    return {f"{name}{mean}": float(values.mean()), f"{name}_se": error}


def areas(points: pd.DataFrame) -> dict[str, Floats]:
    """Return by selector the area under each seed's curve of SAD (seeds,), from beta 0 to beta 1,
    of the rows of one dataset and model."""
    return {
        selector: np.array([area(c.beta, c.sad) for _, c in curves.groupby("seed", sort=False)])
        for selector, curves in points.groupby("selector", sort=False)
    }


def gold_sad(points: pd.DataFrame) -> float | None:
    """Return the mean SAD between the gold standards of two seeds of a dataset and model, which is
    how far a model is from gold by its seed alone; None with one seed."""
    seeds = points.drop_duplicates("seed")[["gold_ppl_forget", "gold_ppl_retain"]].to_numpy()
    pairs = np.array([(*first, *second) for first, second in combinations(seeds, 2)]).T
    return float(sad(*pairs).mean()) if len(seeds) > 1 else None
