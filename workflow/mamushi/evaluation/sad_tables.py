"""The tables ``sad``, ``sad_summary`` and ``selection`` of a grid. A change here makes these anew,
and nothing else that needs SAD, which imports ``sad``."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.evaluation.intervals import Floats, finite_or_none, standard_error
from mamushi.evaluation.sad import BASELINE, GridLists, area, read_arm, sad
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.domains import DOMAINS
from mamushi.io.tables import read_metadata, read_table
from mamushi.selection.removals import budget_size

if TYPE_CHECKING:
    import pandas as pd


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
        between = {b: arms.retrained_arm(selector, b) for b in sorted(grid["budgets"])}
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
            row |= {"gold_sad": between_golds, **_mean_columns("area", by_selector[selector])}
            chance = by_selector.get(BASELINE)
            if chance is not None and chance.mean() != 0:
                # With the error of paired differences.
                relative = (by_selector[selector] - chance) / chance.mean()
                row |= _mean_columns("area_vs_random", relative, mean="")
            for name in ("ppl_forget", "ppl_retain", "sad", "log_sad"):
                row |= _mean_columns(name, at[name].to_numpy())
            for domain in DOMAINS:
                row |= _mean_columns(f"{domain}_distance", at[f"{domain}_distance"].to_numpy())
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.SAD_SUMMARY.schema)


def _mean_columns(name: str, values: Floats, mean: str = "_mean") -> dict[str, float | None]:
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
