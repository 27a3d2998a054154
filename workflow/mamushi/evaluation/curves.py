"""From the perplexity files of a grid to the table ``sad``: one curve per run and selector.

Every curve has both ends, which all selectors of a run share: beta 0 (nothing removed) and beta 1
(the gold-standard model, where SAD is 0 by definition).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import FORGET, RETAIN, read_table
from mamushi.configuration import arms
from mamushi.configuration.grid import cells
from mamushi.errors import UserError
from mamushi.evaluation.sad import sad

Grid = Mapping[str, Any]
"""Lists ``datasets, models, seeds, budgets, selectors``, as in the configuration."""


@dataclass(frozen=True)
class Perplexity:
    """Held-out perplexity of one model, and the mean NLL per token (nats) behind it, by domain."""

    ppl_forget: float
    ppl_retain: float
    nll_forget: float
    nll_retain: float


def read_perplexity(path: str | Path) -> Perplexity:
    """Read one ``perplexity`` artifact.

    Raises ``UserError`` when it is missing or damaged, lacks a domain, or holds a number that is
    not finite: a diverged training must not vanish in a mean.
    """
    rows = {row["domain"]: row for row in read_table(path, schemas.PERPLEXITY).to_pylist()}
    if set(rows) != {FORGET, RETAIN}:
        raise UserError(
            f"holds the domains {sorted(rows)} instead of forget and retain",
            where=path,
            do="delete it and run again",
        )
    found = Perplexity(
        ppl_forget=rows[FORGET]["perplexity"],
        ppl_retain=rows[RETAIN]["perplexity"],
        nll_forget=rows[FORGET]["nll"],
        nll_retain=rows[RETAIN]["nll"],
    )
    if not all(math.isfinite(value) for value in vars(found).values()):
        raise UserError(
            "the perplexity is not a finite number",
            where=path,
            do="look for a diverging loss in the model's train_log.parquet",
        )
    return found


def read_removed(path: str | Path) -> tuple[int, int]:
    """The number of examples that a removal manifest removes, and of which forget set.

    Raises ``UserError`` when it is missing, damaged, or says neither.
    """
    manifest = read_json(path)
    try:
        return int(manifest["removed"]), int(manifest["n_forget"])
    except (KeyError, TypeError, ValueError):
        raise UserError(
            "no numbers 'removed' and 'n_forget'", where=path, do="delete it and run again"
        ) from None


def sad_table(grid: Grid, root: str | Path = "results") -> pa.Table:
    """The table ``sad`` of a grid: a row per dataset, model, seed, selector and beta.

    Raises ``UserError`` that names the first missing or damaged file.
    """
    rows = [row for run in cells(grid) for row in _run_rows(run, grid, root)]
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def _run_rows(run: dict[str, Any], grid: Grid, root: str | Path) -> Iterator[dict[str, Any]]:
    gold, beta0 = (
        read_perplexity(paths.under(root, paths.PERPLEXITY, **run, arm=endpoint))
        for endpoint in ("gold", "beta0")
    )
    for selector in grid["selectors"]:
        n_forget = 0
        points = []
        for budget in sorted(grid["budgets"]):
            cell = {**run, "selector": selector, "beta": paths.beta(budget)}
            removed, n_forget = read_removed(paths.under(root, paths.MANIFEST, **cell))
            at = paths.under(root, paths.PERPLEXITY, **run, arm=arms.retrained(selector, budget))
            points.append((budget, removed, read_perplexity(at)))
        for beta, removed, at in [(0.0, 0, beta0), *points, (1.0, n_forget, gold)]:
            yield {
                **run,
                "selector": selector,
                "beta": beta,
                "removed": removed,
                "ppl_forget": at.ppl_forget,
                "ppl_retain": at.ppl_retain,
                "gold_ppl_forget": gold.ppl_forget,
                "gold_ppl_retain": gold.ppl_retain,
                "sad": float(sad(at.ppl_forget, at.ppl_retain, gold.ppl_forget, gold.ppl_retain)),
                "log_sad": float(
                    sad(at.nll_forget, at.nll_retain, gold.nll_forget, gold.nll_retain)
                ),
            }
