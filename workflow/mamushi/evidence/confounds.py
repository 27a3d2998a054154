"""Find what a score follows beside the domain: a text's length, copies, the labels it came with.

Intervals are 95%; one in twenty misses, and there are as many as rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import FORGET, RETAIN, read_table
from mamushi.data.labels import read_labels
from mamushi.selection.metrics import NORMAL, TWICE, average_ranks, spearman

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Found = tuple[float, float, float]
"""An estimate with the ends of its interval."""
Row = dict[str, Any]

FEWEST = 10
"""Texts that must differ from the most common value, or have it, before an interval is honest."""
VALUES = 20
"""Most values of a categorical label, the most frequent first."""
STRATA = 10
"""Of length, with about as many texts each."""


@dataclass(frozen=True)
class Texts:
    """Properties (n,) of texts: ``copies`` that were collapsed into each; ``labels`` by column,
    float64 with NaN, or strings with None, where a text has none."""

    words: Doubles
    copies: Doubles
    labels: Mapping[str, NDArray[Any]]


def read_texts(examples: str | Path, duplicates: str | Path, ids: Sequence[str]) -> Texts:
    """Read what ``examples`` and ``duplicates`` say of the texts ``ids``, in their order. Raises
    ``UserError`` for an id that is not there."""
    found = read_labels(examples, ids, do="delete the scores and score again")
    kept = read_table(duplicates, schemas.DUPLICATES, ["kept_id"])["kept_id"].drop_null()
    copies = Counter(kept.to_pylist())
    counts = np.array([copies[name] for name in ids], dtype=np.float64)
    return Texts(found.words, counts, found.labels)


def confounds(
    score: Doubles, forget: Mask, texts: Texts, *, cross_fitted: bool = False
) -> list[Row]:
    """Return rows of the table ``confounds`` but for the cell and the selector, of n texts.

    ``why`` says why a row has no estimate. The AUCs of ``cross_fitted`` scores have an interval for
    that of a ranking by all texts.
    """
    rows = []
    for domain, inside in ((FORGET, forget), (RETAIN, ~forget)):
        known = {"words": texts.words, "copies": texts.copies, **texts.labels}
        rows += [
            {"domain": domain, "confound": name, **row}
            for name, values in known.items()
            for row in _within(score[inside], values[inside])
        ]
    everywhere = np.zeros(len(score), dtype=np.int64)
    for measure, strata in (("auc", everywhere), ("auc_matched", stratum(texts.words))):
        row = _area_row(score, forget, strata, TWICE if cross_fitted else 1.0)
        about = {"domain": None, "confound": "words", "value": None, "measure": measure}
        rows.append({**about, **row})
    return rows


def _within(score: Doubles, values: NDArray[Any]) -> Iterator[Row]:
    """Yield the rows of one domain and confound."""
    if values.dtype != object:
        there = ~np.isnan(values)
        row = _correlation_row(score[there], values[there].astype(np.float64))
        yield {"value": None, "measure": "spearman", **row}
        return
    there = np.array([v is not None for v in values])
    score, values = score[there], values[there]
    names, count = np.unique(values.astype(str), return_counts=True)
    for i in np.argsort(-count, kind="stable")[:VALUES]:
        row = _area_row(score, values == names[i], np.zeros(len(score), dtype=np.int64))
        yield {"value": str(names[i]), "measure": "auc_of_value", **row}


def _correlation_row(score: Doubles, values: Doubles) -> Row:
    _, count = np.unique(values, return_counts=True)
    differ = len(values) - int(count.max(initial=0))
    if why := _refusal(score, differ, "texts differ from the others"):
        return _row(None, len(score), why=why)
    return _row(correlation(score, values), len(score), 0.0, why="all scores are equal")


def _area_row(score: Doubles, positive: Mask, strata: NDArray[np.int64], times: float = 1.0) -> Row:
    smaller = min(int(positive.sum()), int((~positive).sum()))
    if why := _refusal(score, smaller, "texts on one of the sides"):
        return _row(None, len(score), why=why)
    return _row(*area(score, positive, strata, times), 0.5, why="no length is common to both")


def _refusal(score: Doubles, texts: int, what: str) -> str | None:
    if np.isnan(score).any():
        return "no score for retain texts"
    return f"{texts} {what}" if texts < FEWEST else None


def _row(found: Found | None, texts: int, chance: float = 0.0, *, why: str) -> Row:
    """Return a row with what was found, or without it and ``why``."""
    if found is None:
        nothing = dict.fromkeys(("estimate", "low", "high", "apart"))
        return {"texts": texts, **nothing, "why": why}
    estimate, low, high = found
    ends = {"estimate": estimate, "low": low, "high": high}
    return {"texts": texts, **ends, "apart": not low <= chance <= high, "why": None}


def correlation(a: Doubles, b: Doubles) -> Found | None:
    """Return Spearman's correlation of (n,) and (n,), n > 3, with its 95% interval; None of
    constants.

    Fisher's z with the standard error sqrt((1 + r^2 / 2) / (n - 3)) of Bonett and Wright (2000).
    """
    r = spearman(a, b)
    if r is None:
        return None
    r = min(max(r, -1.0), 1.0)
    with np.errstate(divide="ignore"):
        z = np.arctanh(r)
    half = NORMAL * np.sqrt((1 + r**2 / 2) / (len(a) - 3))
    return r, float(np.tanh(z - half)), float(np.tanh(z + half))


def stratum(words: Doubles) -> NDArray[np.int64]:
    """Return the stratum of length (n,) that each text is in, of at most ``STRATA``."""
    edges = np.unique(np.quantile(words, np.arange(1, STRATA) / STRATA))
    return np.searchsorted(edges, words, side="right").astype(np.int64)


def area(
    score: Doubles, positive: Mask, strata: NDArray[np.int64], times: float = 1.0
) -> tuple[Found | None, int]:
    """Return the AUC of scores (n,) over pairs within a stratum, and the number of texts in them.

    The mean of the strata's AUCs, weighted by their positives: a positive against a negative of its
    own stratum. Strata with fewer than two of either are left out; None if all are. The interval is
    DeLong's (1988) on the scale of the logit, with ``times`` its variance; where no pair is out of
    order, that of an AUC a with a^m = 0.025, by m independent pairs.
    """
    parts, sizes = [], []
    for number in np.unique(strata):
        inside = strata == number
        one, two = score[inside & positive], score[inside & ~positive]
        if min(len(one), len(two)) >= 2:
            parts.append((len(one), *_delong(one, two)))
            sizes.append((len(one), len(two)))
    if not parts:
        return None, 0
    used = sum(map(sum, sizes))
    weight, estimates, variances = np.array(parts).T
    weight /= weight.sum()
    estimate, variance = float(weight @ estimates), times * float(weight**2 @ variances)
    if not 0 < estimate < 1:
        # As many pairs as the smaller domain has texts are independent of each other.
        pairs = sum(min(one, two) for one, two in sizes)
        bound = float(0.025 ** (1 / pairs))
        return ((1.0, bound, 1.0) if estimate else (0.0, 0.0, 1 - bound)), used
    logit = np.log(estimate / (1 - estimate))
    half = NORMAL * np.sqrt(variance) / (estimate * (1 - estimate))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (logit - half, logit + half))
    return (estimate, low, high), used


def _delong(one: Doubles, two: Doubles) -> tuple[float, float]:
    """Return the AUC of (n1,) against (n2,), and DeLong's variance of it."""
    n1, n2 = len(one), len(two)
    ranks = average_ranks(np.concatenate([one, two]))
    above = (ranks[:n1] - average_ranks(one)) / n2
    below = 1 - (ranks[n1:] - average_ranks(two)) / n1
    return float(above.mean()), float(above.var(ddof=1) / n1 + below.var(ddof=1) / n2)
