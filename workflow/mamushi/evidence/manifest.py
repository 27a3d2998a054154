"""Say what a removal list is expected to do, in a manifest that others can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.frontier import Frontier, ranking_of
from mamushi.evidence.verdict import (
    dependence,
    judge_list,
    judge_scores,
    ratio_checks,
    separation_by,
    share_bound,
)
from mamushi.io import schemas
from mamushi.io.paths import beta as written
from mamushi.io.tables import FORGET, read_metadata, read_table
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool
from mamushi.selection.removals import digest_of_ids, removal_list


@dataclass(frozen=True)
class Calibrated:
    """A table ``calibrated``: the ratio of every example, what it has lost, the ``selector`` whose
    scores it was made from, the ``reason`` why these carry no verdict, if so, why no number may
    rest on the ratio (``withheld``), and how the ``texts`` depend on each other."""

    table: pa.Table
    lost: float
    selector: str
    reason: str | None = None
    withheld: str | None = None
    texts: Dependence | None = None

    @property
    def groups(self) -> GroupCodes | None:
        """Return the codes (n,) of the groups of texts; None without any."""
        column = self.table["group"]
        return None if column.null_count else column.to_numpy().astype(np.int64)


def read_calibrated(path: str | Path) -> Calibrated:
    """Read a table ``calibrated``."""
    stored = read_metadata(path)
    table = read_table(path, schemas.CALIBRATED)
    by = stored["provenance"]["settings"]["selector"]
    return _calibrated(table, stored["lost"], by, stored["verdict"])


def _calibrated(table: pa.Table, lost: float, by: str, verdict: Mapping[str, Any]) -> Calibrated:
    texts = Dependence(**verdict["texts"]) if verdict["texts"] else None
    return Calibrated(table, lost, by, verdict["reason"], verdict["withheld"], texts)


def calibrate_pool(
    table: pa.Table,
    ratio: tuple[RatioScores, Sequence[Doubles]],
    pool: Pool,
    by: str,
    resamples: int,
    seed: int,
    *,
    refitted: bool,
) -> tuple[Calibrated, dict[str, Any], list[dict[str, Any]]]:
    """Estimate the log-density ratio of every text of ``pool``.

    ``table`` are the scores of the selector ``by``, and ``ratio`` is ``ratio_of`` them. Return the
    estimate, the verdict on it, and the rows of ``ratio_checks``.
    """
    scores, whole = replace(ratio[0], groups=pool.groups), ratio[1]
    estimate = scores.estimate()
    checked = ratio_checks(scores, estimate, resamples, seed)
    texts = dependence(scores, pool.embeddings)
    judged = judge_scores(scores, whole, checked, texts, refitted=refitted)
    columns = {
        **{name: table[name] for name in ("id", "domain", "score")},
        "log_ratio": pa.array(estimate.log_ratio),
        "group": pa.nulls(len(table), pa.int64()) if pool.groups is None else pa.array(pool.groups),
    }
    calibrated = pa.table(columns, schema=schemas.CALIBRATED.schema)
    return _calibrated(calibrated, estimate.lost, by, judged), judged, checked


def _forget(scores: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(scores["domain"], FORGET))


def _also_retain(scores: pa.Table, k: int, groups: GroupCodes | None) -> dict[str, float | None]:
    """Return ``share_bound`` of the first ``k`` examples; null where the retain texts have no
    score, or where the ranking is not by the score."""
    region = ranking_of(scores, by_chance=False).region
    share = bound = None
    if region is not None and k:
        n1 = len(region.score1)
        # In the order of the scores.
        codes = None if groups is None else groups[~_forget(scores)][region.order]
        share, bound = share_bound(region.score2, float(region.score1[k - 1]), k / n1, codes)
    return {"estimate": share, "upper_bound": bound}


@dataclass(frozen=True)
class Ranked:
    """What is known of the ranking that a list is the top of: the name of its ``selector``, how
    well it ``separates`` the domains, of how many rankings the list's texts are ``listed`` at the
    budget, why it is there for comparison alone, if so, and whether it was drawn by chance."""

    selector: str
    separates: Mapping[str, Any]
    listed: Mapping[str, Any]
    compared: str | None = None
    by_chance: bool = False

    @classmethod
    def at(cls, beta: float, selector: str, stable: Mapping[str, Any], *attributes: Any) -> Ranked:
        """Return the ranking at the budget ``beta``, by metadata of the table ``stability``."""
        listed = {"rankings": stable["rankings"], **stable["budgets"][written(beta)]}
        return cls(selector, stable["separation"], listed, *attributes)


def manifest(
    scores: pa.Table,
    ratio: Calibrated,
    duplicates: pa.Table,
    k: int,
    ranked: Ranked,
    named: dict[str, Any],
) -> dict[str, Any]:
    """Return what a trainer needs to know of the removal of the first ``k`` examples.

    ``cross_posts`` counts the texts that stood in both domains, and so are in no list. ``named`` is
    added as it is. What is expected is null, with the reason, where the ratio cannot carry it.
    """
    assert scores["id"].equals(ratio.table["id"]), "the scores and the ratio hold other examples"
    listed = removal_list(scores, duplicates, k)
    forget = _forget(scores)
    n1, log_ratio = int(forget.sum()), ratio.table["log_ratio"].to_numpy()
    domains = log_ratio[forget], log_ratio[~forget]
    ranks = ranking_of(scores, ranked.by_chance)
    curve = Frontier(ranks, *domains, float(forget.mean()), ratio.lost)
    counts = {"at_this_budget": k, "nothing_removed": 0, "all_removed": n1}
    expected: dict[str, Any] = dict.fromkeys(counts)
    for name, count in () if ratio.withheld else counts.items():
        removed, preserved = curve.at(np.array([count]))
        expected[name] = {"removal": float(removed[0]), "preservation": float(preserved[0])}
    also_retain = _also_retain(scores, k, ratio.groups)
    separates = separation_by(ratio.texts, ranked.separates)
    judged = judge_list(
        separates,
        k,
        ranked.listed,
        also_retain,
        compared=ranked.compared,
        # The checks hold for the ranking whose scores the ratio was made from, and for no other.
        reason=ratio.reason if ratio.selector == ranked.selector else None,
        texts=ratio.texts.words() if ratio.texts else "",
    )
    return {
        **named,
        "n_forget": n1,
        "n_retain": len(scores) - n1,
        "removed": k,
        "copies": sum(map(len, listed["copies"].to_pylist())),
        "cross_posts": duplicates["kept_id"].null_count,
        "threshold": float(listed["score"][-1].as_py()) if k else None,
        "ids_sha256": digest_of_ids(listed["id"].to_pylist()),
        "ids_sha256_of": "the ids by rank, without copies, in UTF-8, each followed by a newline",
        "verdict": judged.pop("words"),
        "judgement": judged,
        "separation": separates,
        "also_retain": {
            **also_retain,
            "of": "the share of the list that as many retain texts would have put there, by their "
            "scores; the bound holds with 95%, at all budgets at once",
        },
        "expected": {
            "unit": "nats",
            "by": ratio.selector,
            "withheld": ratio.withheld,
            **expected,
        },
    }
