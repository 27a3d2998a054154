"""Find what a score follows beside the domain: a text's length, copies, the labels it came with.

Intervals are 95%; one in twenty misses, and there are as many as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes, independent
from mamushi.data.labels import Ids, places_of, read_labels
from mamushi.io import schemas
from mamushi.io.tables import FORGET, RETAIN, read_table
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.metrics import (
    DELONG_FACTOR,
    NORMAL,
    auc_ends,
    average_ranks,
    clusters_of,
    placements,
    sampling_variance,
    spearman,
    t_error,
)

Interval = tuple[float, float, float]
"""An estimate with the ends of its interval."""
Strata = NDArray[np.int64]
_Row = dict[str, Any]

_FEWEST = 10
"""Texts that must differ from the most common value, or have it, before an interval is honest."""
_MOST_VALUES = 20
"""Most values of a categorical label, the most frequent first."""
FOLLOWED = 0.3
"""On a scale from -1 to 1, from where a score or a label follows something else."""
STRATA = 10
"""Of length, with about as many texts each."""


@dataclass(frozen=True)
class TextProperties:
    """Properties (n,) of texts: ``copies`` that were collapsed into each; ``labels`` by column,
    float64 with NaN, or strings with None, where a text has none; the same of other ``columns`` of
    the table; codes of their ``groups``."""

    words: Doubles
    copies: Doubles
    labels: Mapping[str, NDArray[Any]]
    groups: GroupCodes | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def read_texts(examples: str | Path, duplicates: str | Path, ids: Ids) -> TextProperties:
    """Read the properties of the texts ``ids``, in their order: ``examples`` has their lengths,
    labels and groups, ``duplicates`` the copies. Raises ``UserError`` for an id that is not there.
    """
    texts = read_labels(examples, ids, do="delete the scores and score again")
    originals = read_table(duplicates, schemas.DUPLICATES, ["kept_id"])["kept_id"]
    counts = pc.value_counts(originals.drop_null())
    # What has no copies has the place -1.
    copies = np.append(counts.field("counts").to_numpy(), 0)
    copies = copies[places_of(ids, counts.field("values"))].astype(np.float64)
    return TextProperties(texts.words, copies, texts.labels, texts.groups, texts.columns)


def confound_rows(
    score: Doubles, forget: Mask, texts: TextProperties, *, cross_fitted: bool = False
) -> list[_Row]:
    """Return rows of the table ``confounds`` but for the cell and the selector, of n texts.

    ``why`` says why a row has no estimate. The AUCs of ``cross_fitted`` scores have an interval for
    that of a ranking by all texts.
    """
    columns = {"words": texts.words, "copies": texts.copies, **texts.labels}
    rows = [
        {"domain": domain, "confound": name, **row}
        for (domain, inside), (name, values) in product(
            ((FORGET, forget), (RETAIN, ~forget)), columns.items()
        )
        for row in _followed(score, values, inside, texts.groups)
    ]
    times = DELONG_FACTOR if cross_fitted else 1.0
    alike, by_length = np.zeros(len(score), dtype=np.int64), stratum(texts.words)
    for measure, strata in (("auc", alike), ("auc_matched", by_length)):
        row = _area_row(score, forget, strata, texts.groups, times)
        head = {"domain": None, "confound": "words", "value": None, "measure": measure}
        rows.append({**head, **row})
    return rows


def leaking_columns(
    score: Doubles,
    forget: Mask,
    columns: Mapping[str, NDArray[Any]],
    groups: GroupCodes | None = None,
    *,
    cross_fitted: bool = False,
) -> list[_Row]:
    """Return the columns (n,) of a table that tell the domain, or that scores follow within the
    forget domain: each with the AUC among texts of equal value and its interval, None where no
    value is of both domains.

    A column tells the domain where Pearson's chi-squared test says so, for all columns at once at
    1%, and Cramer's V, corrected for its bias (Bergsma, 2013), is at least ``FOLLOWED``.
    """
    rows, times = [], DELONG_FACTOR if cross_fitted else 1.0
    for name, values in columns.items():
        strata, interval = value_stratum(values), None
        tells = _tells(strata, forget, 0.01 / len(columns), groups)
        followed = [row for row in _followed(score, values, forget, groups) if row["apart"]]
        if tells or max(map(beyond, followed), default=0.0) >= FOLLOWED:
            if not np.isnan(score).any():
                interval, _ = stratified_auc(score, forget, strata, times, groups)
            ends = dict(zip(("auc", "low", "high"), interval or (None,) * 3, strict=True))
            rows.append({"column": name, "tells": tells, **ends})
    return rows


def _tells(strata: Strata, forget: Mask, level: float, groups: GroupCodes | None) -> bool:
    from scipy.stats import chi2

    n, code = len(strata), np.unique(strata, return_inverse=True)[1]
    table = np.stack([np.bincount(code, domain) for domain in (~forget, forget)], axis=1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    if len(table) < 2 or not expected.all():
        return False
    quotient = float(((table - expected) ** 2 / expected).sum()) / n
    free, alone = len(table) - 1, n * independent(groups)
    width = free + 1 - free**2 / (alone - 1)
    unbiased = max(quotient - free / (alone - 1), 0.0) / min(width - 1, 1 - 1 / (alone - 1))
    return bool(chi2.sf(quotient * alone, free) < level and unbiased >= FOLLOWED**2)


def beyond(row: _Row) -> float:
    """Return how far the near end of an interval is from chance, on a scale from 0 to 1."""
    ends = np.array([row["low"], row["high"]])
    return float(np.abs(ends if row["measure"] == "spearman" else 2 * ends - 1).min())


def stratum(values: Doubles) -> Strata:
    """Return the stratum (n,) of numbers, of at most ``STRATA`` with about as many texts each."""
    edges = np.unique(np.quantile(values, np.arange(1, STRATA) / STRATA))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def value_stratum(values: NDArray[Any]) -> Strata:
    """Return the stratum (n,) of equal values, or of numbers at most ``STRATA``, and one of texts
    without a value."""
    if values.dtype == object:
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
    known, strata = ~np.isnan(values), np.zeros(len(values), dtype=np.int64)
    distinct, code = np.unique(values[known], return_inverse=True)
    strata[known] = 1 + (code if len(distinct) <= STRATA else stratum(values[known]))
    return strata


def _followed(
    score: Doubles, values: NDArray[Any], inside: Mask, groups: GroupCodes | None
) -> Iterator[_Row]:
    """Yield the rows of a confound (n,) of those texts ``inside`` a domain that have a value."""
    here = inside & np.asarray(pa.array(values, from_pandas=True).is_valid())
    score, values, groups = score[here], values[here], None if groups is None else groups[here]
    if values.dtype == object:
        alike = np.zeros(len(score), dtype=np.int64)
        names, count = np.unique(values.astype(str), return_counts=True)
        for name in names[np.argsort(-count, kind="stable")[:_MOST_VALUES]]:
            row = _area_row(score, values == name, alike, groups)
            yield {"value": str(name), "measure": "auc_of_value", **row}
        return
    numbers = values.astype(np.float64)
    distinct, count = np.unique(numbers, return_counts=True)
    common = distinct[int(count.argmax())] if len(distinct) else 0.0
    why = _too_few(score, values != common, groups, "texts differ from the others")
    interval = None if why else correlation(score, numbers, groups)
    row = _row(interval, len(score), 0.0, why or "all scores are equal")
    yield {"value": None, "measure": "spearman", **row}


def _area_row(
    score: Doubles,
    positive: Mask,
    strata: Strata,
    groups: GroupCodes | None,
    times: float = 1.0,
) -> _Row:
    for side in (positive, ~positive):
        if why := _too_few(score, side, groups, "texts on one of the sides"):
            return _row(None, len(score), 0.5, why)
    interval, used = stratified_auc(score, positive, strata, times, groups)
    return _row(interval, used, 0.5, "no length is common to both")


def _too_few(score: Doubles, mask: Mask, groups: GroupCodes | None, label: str) -> str | None:
    """Say why there is no estimate, where it would rest on few of the texts or of their groups."""
    if np.isnan(score).any():
        return "no score for retain texts"
    number = int(mask.sum())
    if number >= _FEWEST and groups is not None:
        number, label = len(np.unique(groups[mask])), f"groups of {label}"
    return f"{number} {label}" if number < _FEWEST else None


def _row(interval: Interval | None, texts: int, chance: float, why: str) -> _Row:
    """Return a row with the estimate and its interval, or without them and the reason ``why``."""
    estimate, low, high = interval or (None, None, None)
    apart = None if low is None or high is None else not low <= chance <= high
    row = {"texts": texts, "estimate": estimate, "low": low, "high": high, "apart": apart}
    return {**row, "why": None if interval else why}


def correlation(a: Doubles, b: Doubles, groups: GroupCodes | None = None) -> Interval | None:
    """Return Spearman's correlation of (n,) and (n,), n > 3, with its 95% interval; None of
    constants.

    Fisher's z with the standard error sqrt((1 + r^2 / 2) / (n - 3)) of Bonett and Wright (2000).
    By ``groups`` (n,) it is times the root of what the variance of sums over groups of
    a b - r (a^2 + b^2) / 2, of standardised ranks, is of that of independent texts, if more.
    """
    r = spearman(a, b)
    if r is None:
        return None
    r = min(max(r, -1.0), 1.0)
    half = NORMAL * np.sqrt((1 + r**2 / 2) / (len(a) - 3))
    if groups is not None:
        ranks_a, ranks_b = (average_ranks(x) for x in (a, b))
        ranks_a, ranks_b = ((x - x.mean()) / x.std() for x in (ranks_a, ranks_b))
        products = ranks_a * ranks_b - r * (ranks_a**2 + ranks_b**2) / 2
        apart = float((products**2).sum())
        together = float((np.bincount(groups, products) ** 2).sum())
        half *= np.sqrt(max(together / apart, 1.0)) if apart > 0 else 1.0
    with np.errstate(divide="ignore"):
        z = np.arctanh(r)
    return r, float(np.tanh(z - half)), float(np.tanh(z + half))


def stratified_auc(
    score: Doubles,
    positive: Mask,
    strata: Strata,
    times: float = 1.0,
    groups: GroupCodes | None = None,
) -> tuple[Interval | None, int]:
    """Return the AUC of scores (n,) over pairs within a stratum, and the number of texts in them.

    The mean of the strata's AUCs, weighted by their positives: a positive against a negative of its
    own stratum. Strata with fewer than two of either are left out; None if all are. The interval is
    that of ``auc_ends``, with ``times`` DeLong's variance, or that by ``groups`` (n,).
    """
    rows, placed = [], []
    for number in np.unique(strata):
        sides = [np.flatnonzero((strata == number) & side) for side in (positive, ~positive)]
        if min(map(len, sides)) >= 2:
            both = score[np.concatenate(sides)]
            rows.append(sides)
            placed.append(placements(both, np.arange(len(both)) < len(sides[0])))
    if not rows:
        return None, 0
    sizes = np.array([len(positives) for positives, _ in rows])
    weight = sizes / sizes.sum()
    estimate = float(weight @ [float(above.mean()) for above, _ in placed])
    every = [np.concatenate(side) for side in zip(*rows, strict=True)]
    used, clusters = np.concatenate(every), None
    if groups is not None:
        clusters = clusters_of(groups[used], np.arange(len(used)) < len(every[0]))
    if clusters is None:
        by_stratum = [sampling_variance(*pair) / DELONG_FACTOR for pair in placed]
        variance, errors = float(weight**2 @ by_stratum), NORMAL
        texts = sum(min(map(len, sides)) for sides in rows)
    else:
        # As if of one stratum, each text with what it weighs.
        above, below = (
            np.concatenate(
                [
                    share * len(every[side]) / len(pair[side]) * (pair[side] - pair[side].mean())
                    for share, pair in zip(weight, placed, strict=True)
                ]
            )
            for side in (0, 1)
        )
        variance = sampling_variance(above, below, clusters) / DELONG_FACTOR
        texts = min(len(np.unique(codes)) for codes in clusters)
        errors = t_error(above, below, clusters)
    return (estimate, *auc_ends(estimate, times * variance, texts, errors)), len(used)
