"""Held-out perplexities of a grid's models, the table ``sad`` made of them, and the table
``selection``: how well each ranking tells the domains apart, before any retraining."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.evaluation.sad import sad
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, RETAIN, read_metadata, read_table
from mamushi.selection.removals import budget_size

GridLists = Mapping[str, Any]
"""Lists ``datasets, models, seeds, budgets, selectors`` of the configuration; ``unlearners``, too,
where models are unlearned."""


@dataclass(frozen=True)
class Perplexity:
    """Held-out perplexity of one model, and the mean NLL per token (nats) behind it, by domain."""

    ppl_forget: float
    ppl_retain: float
    nll_forget: float
    nll_retain: float

    def columns(self, whose: str = "") -> dict[str, float]:
        """Return the two perplexities under the names of columns."""
        return {f"{whose}ppl_forget": self.ppl_forget, f"{whose}ppl_retain": self.ppl_retain}

    def sad(self, gold: Self) -> float:
        """Return SAD to a gold standard."""
        return float(sad(self.ppl_forget, self.ppl_retain, gold.ppl_forget, gold.ppl_retain))


def read_perplexity(path: str | Path) -> Perplexity:
    """Read one ``perplexity`` artifact."""
    rows = {row["domain"]: row for row in read_table(path, schemas.PERPLEXITY).to_pylist()}
    ends = [rows[domain] for domain in (FORGET, RETAIN)]
    return Perplexity(*(row["perplexity"] for row in ends), *(row["nll"] for row in ends))


def read_arm(root: str | Path, cell: Mapping[str, Any], arm: str) -> Perplexity:
    """Read the perplexity of an arm of a cell."""
    return read_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=arm))


def sad_table(
    grid: GridLists, root: str | Path = "results", of_tokens: Collection[str] = ()
) -> pa.Table:
    """Return the table ``sad`` of a grid, some of whose selectors are ``of_tokens``: curves with
    both ends, beta 0 (nothing removed) and beta 1 (the gold standard, where SAD is 0)."""
    rows = [row for run in cells(grid) for row in _run_rows(run, grid, root, of_tokens)]
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def _run_rows(
    run: dict[str, Any], grid: GridLists, root: str | Path, of_tokens: Collection[str]
) -> Iterator[dict[str, Any]]:
    gold, beta0 = (read_arm(root, run, endpoint) for endpoint in ("gold", "beta0"))
    for selector in grid["selectors"]:
        # The lists follow from it. Their manifests wait for refits, which no measurement needs.
        if selector in of_tokens:
            path = paths.under(root, paths.TOKEN_SCORES, **run, selector=selector)
            units = len(pc.list_flatten(read_table(path, schemas.TOKEN_SCORES)["score"]))
        else:
            path = paths.under(root, paths.SCORES, **run, selector=selector)
            units = int(pc.count(read_table(path, schemas.SCORES, ["rank"])["rank"]).as_py())
        models = {0.0: beta0}
        for budget in sorted(grid["budgets"]):
            models[budget] = read_arm(root, run, arms.retrained(selector, budget))
        for beta, at in {**models, 1.0: gold}.items():
            nll = (at.nll_forget, at.nll_retain, gold.nll_forget, gold.nll_retain)
            yield {
                **{**run, "selector": selector, "beta": beta, "removed": budget_size(beta, units)},
                **{**at.columns(), **gold.columns("gold_")},
                **{"sad": at.sad(gold), "log_sad": float(sad(*nll))},
            }


def selection_table(grid: GridLists, root: str | Path = "results") -> pa.Table:
    """Return a row per dataset, model, seed and selector, from what the scores' metadata say. Only
    cross-fitted selectors have folds, only synthetic data a truth, and some no retain scores."""
    rows = []
    for run, selector in product(cells(grid), grid["selectors"]):
        path = paths.under(root, paths.SCORES, **run, selector=selector)
        details = read_metadata(path)["details"]
        folds = details.get("per_fold", [])
        areas, offsets = ([fold[name] for fold in folds] for name in ("auc", "offset"))
        row = {**run, "selector": selector, "ties": details["ties"]}
        row |= {name: details.get(name) for name in ("auc", "spearman_with_truth")}
        row["auc_fold_mean"] = sum(areas) / len(areas) if areas else None
        row["auc_fold_min"], row["auc_fold_max"] = (
            min(areas, default=None),
            max(areas, default=None),
        )
        row["fold_offset"] = max(offsets) - min(offsets) if offsets else None
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.SELECTION.schema)
