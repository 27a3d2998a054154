"""Compare rankings: of selectors with each other, and of one selector with itself, refitted.

Refits say how far chance decides a list. The rankings are that of the scores and those of their
whole refits (``selection/refits.py``), R in all. The frequency of a text at a budget is the share
of them that list it. ``surely`` is frequency 1: then its chance to be in another list is at least
0.05 ** (1 / R) with 95% confidence (the Clopper-Pearson bound for R of R), 0.61 for 6 rankings; any
other text of the list is a toss-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io import paths
from mamushi.io.domains import FORGET
from mamushi.selection.metrics import spearman
from mamushi.selection.refits import WHOLE_REFIT, Refit
from mamushi.selection.removals import budget_size


def rankings(scores: pa.Table, refits: Iterable[Refit]) -> tuple[list[str], NDArray[np.int64]]:
    """Return ids (n1,) of the forget examples in the order of ``scores``, and their ranks (R, n1)
    from 1 there and in each whole one of ``refits``."""
    forget = np.asarray(scores["rank"].is_valid())
    ids = scores["id"].filter(scores["rank"].is_valid()).to_numpy().astype(np.str_)
    ranks = [np.asarray(scores["rank"].drop_null().to_numpy(), dtype=np.int64)]
    certain = np.zeros(len(ids), dtype=np.bool_)
    if "posterior" in scores.column_names:
        # Of a corpus: a copy of an example comes first, whatever its score.
        is_copy = pc.and_(pc.equal(scores["domain"], FORGET), pc.equal(scores["posterior"], 1.0))
        certain = np.asarray(is_copy)[forget]
    for part, _, scored in refits:
        if part == WHOLE_REFIT:
            # Highest score first, ties by id.
            order = np.lexsort((ids, -scored.scores[forget], ~certain))
            ranks.append(np.argsort(order) + 1)
    return ids.tolist(), np.stack(ranks)


def stability_columns(
    ids: Sequence[str], ranks: NDArray[np.int64], budgets: Sequence[float]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the table ``stability`` from ``rankings``, and a summary of them.

    The summary has the number of ``rankings`` R, mean and least Spearman correlation of the first
    with the others, and per budget of the first list ``expected_overlap`` and ``least_overlap``,
    mean and least share of it that another ranking lists, and how many of its texts are ``surely``
    in it and a ``toss_up``; all are None with R = 1, since one ranking says nothing of another.
    """
    total, n1 = ranks.shape
    summary: dict[str, Any] = {"rankings": total, "budgets": {}}
    correlations = [spearman(ranks[0], ranking) for ranking in ranks[1:]]
    defined = [correlation for correlation in correlations if correlation is not None]
    if defined:
        summary["spearman"] = {"mean": float(np.mean(defined)), "least": min(defined)}
    frequencies = np.empty((len(budgets), n1))
    for beta, frequency in zip(budgets, frequencies, strict=True):
        listed = ranks <= (k := budget_size(beta, n1))
        frequency[:] = listed.mean(axis=0)
        overlaps = (listed[1:] & listed[0]).sum(axis=1) / k if k and total > 1 else None
        surely = int((frequency == 1).sum()) if total > 1 else None
        summary["budgets"][paths.beta(beta)] = {
            "expected_overlap": None if overlaps is None else float(overlaps.mean()),
            "least_overlap": None if overlaps is None else float(overlaps.min()),
            "surely": surely,
            "toss_up": None if surely is None else k - surely,
        }
    first, times = np.argsort(ranks[0]), len(budgets)
    columns = {
        "id": np.tile(np.array(ids, dtype=object)[first], times),
        "rank": np.tile(ranks[0][first], times),
        "beta": np.repeat(np.array(budgets, dtype=np.float64), n1),
        "frequency": frequencies[:, first].ravel(),
    }
    return columns, summary


def agreement_rows(
    ranks: Mapping[str, NDArray[np.int64]], budgets: Iterable[float]
) -> list[dict[str, Any]]:
    """Return the rows of the table ``agreement`` but for the cell, of each pair of selectors.

    ``ranks`` (n1,) are places of the same texts, from 1. The share of two lists of K that both have
    is K / n1 by chance.
    """
    rows = []
    for first, second in combinations(ranks, 2):
        ours, theirs = ranks[first], ranks[second]
        correlation = spearman(ours.astype(np.float64), theirs.astype(np.float64))
        for beta in sorted(map(float, budgets)):
            k = budget_size(beta, len(ours))
            both = int(((ours <= k) & (theirs <= k)).sum())
            row = {"first": first, "second": second, "beta": beta, "removed": k}
            rows.append({**row, "shared": both / k if k else None, "spearman": correlation})
    return rows
