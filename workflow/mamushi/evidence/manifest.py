"""Say what a removal list is expected to do, in a manifest that others can check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import FORGET, read_metadata, read_table
from mamushi.errors import UserError
from mamushi.evidence.frontier import Frontier, ranking_of
from mamushi.evidence.verdict import share_bound
from mamushi.selection.metrics import Codes
from mamushi.selection.removals import digest, removals


@dataclass(frozen=True)
class Calibrated:
    """A table ``calibrated``: the ratio of every example, what it has lost, the verdict
    in words, why no number may rest on the ratio, if so, and what is known of the dependence of the
    ``texts``."""

    table: pa.Table
    lost: float
    verdict: str
    withheld: str | None
    texts: Mapping[str, Any] = field(default_factory=dict)

    def codes(self, name: str) -> Codes | None:
        """Return the codes (n,) of ``group`` or ``close_group``; None without any."""
        column = self.table[name]
        return None if column.null_count else column.to_numpy().astype(np.int64)


def read_calibrated(path: str | Path) -> Calibrated:
    """Read a table ``calibrated``. Raises ``UserError`` when the file is missing or damaged."""
    stored = read_metadata(path)
    table = read_table(path, schemas.CALIBRATED)
    verdict = stored["verdict"]
    return Calibrated(
        table, stored["lost"], verdict["words"], verdict["reason"], verdict["texts"] or {}
    )


def _forget(scores: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(scores["domain"], FORGET))


def _expected(curve: Frontier, k: int) -> dict[str, float]:
    """Return removal and preservation in nats of the first ``k`` examples."""
    removed, preserved = curve.at(np.array([k]))
    return {"removal": float(removed[0]), "preservation": float(preserved[0])}


def _also_retain(scores: pa.Table, k: int, groups: Codes | None) -> dict[str, float | None]:
    """Return ``share_bound`` of the first ``k`` examples; null where the retain texts have no
    score, or where the ranking is not by the score."""
    region = ranking_of(scores, by_chance=False).region
    share = bound = None
    if region is not None and k:
        n1 = len(region.score1)
        # In the order of the scores.
        own = None if groups is None else groups[~_forget(scores)][region.order]
        share, bound = share_bound(region.score2, float(region.score1[k - 1]), k / n1, own)
    return {"estimate": share, "upper_bound": bound}


def manifest(
    scores: pa.Table,
    ratio: Calibrated,
    duplicates: pa.Table,
    k: int,
    by_chance: bool,
    named: dict[str, Any],
) -> dict[str, Any]:
    """Return what a trainer or a verifier needs to know of the removal of the first ``k`` examples.

    ``cross_posts`` counts the texts that stood in both domains, and so are in no list. ``named`` is
    added as it is. What is expected is null, with the reason, where the ratio cannot carry it.
    Raises ``UserError`` for a ratio of other examples.
    """
    if not scores["id"].equals(ratio.table["id"]):
        what = "the scores and those that estimate the log-density ratio hold other examples"
        raise UserError(what, do="delete both and score again")
    listed = removals(scores, duplicates, k)
    forget = _forget(scores)
    n1, log_ratio = int(forget.sum()), ratio.table["log_ratio"].to_numpy()
    domains = log_ratio[forget], log_ratio[~forget]
    ranks = ranking_of(scores, by_chance)
    curve = Frontier(ranks, *domains, float(forget.mean()), ratio.lost)
    at = {"at_this_budget": k, "nothing_removed": 0, "all_removed": n1}
    return {
        **named,
        "n_forget": n1,
        "n_retain": len(scores) - n1,
        "removed": k,
        "copies": sum(map(len, listed["copies"].to_pylist())),
        "cross_posts": duplicates["kept_id"].null_count,
        "threshold": float(listed["score"][-1].as_py()) if k else None,
        "ids_sha256": digest(listed["id"].to_pylist()),
        "ids_sha256_of": "the ids by rank, without copies, in UTF-8, each followed by a newline",
        "verdict": ratio.verdict,
        "also_retain": {
            **_also_retain(scores, k, ratio.codes("group")),
            "of": "the share of the list that as many retain texts would have put there, by their "
            "scores; the bound holds with 95%, at all budgets at once",
        },
        "expected": {
            "unit": "nats",
            "withheld": ratio.withheld,
            **{name: None if ratio.withheld else _expected(curve, n) for name, n in at.items()},
        },
    }
