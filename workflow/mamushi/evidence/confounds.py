"""Find what a score follows beside the domain: a text's length, copies, the labels it came with,
and the other columns of its table. Intervals are 95%."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes, independent
from mamushi.data.labels import Ids, places_of, read_labels
from mamushi.io import schemas
from mamushi.io.tables import read_table
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


def followed(score: Doubles, forget: Mask, texts: TextProperties) -> list[_Row]:
    """Return what scores (n,) surely follow within the forget domain, the closest first: the
    ``confound``, its ``value`` if that is a category, and the ``measure`` with its ``estimate``."""
    columns = {"words": texts.words, "copies": texts.copies, **texts.labels}
    rows = [
        (beyond, {"confound": name, **row})
        for name, values in columns.items()
        for beyond, row in _followed(score, values, forget, texts.groups)
    ]
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def matched_auc(
    score: Doubles, forget: Mask, texts: TextProperties, *, cross_fitted: bool = False
) -> Interval | None:
    """Return the AUC of scores (n,) among texts of one length, with its interval; None where too
    few texts, or their groups, are of a domain, or a score is missing. The interval of
    ``cross_fitted`` scores is for that of a ranking by all texts."""
    if np.isnan(score).any() or not _are_enough(forget, texts.groups):
        return None
    times = DELONG_FACTOR if cross_fitted else 1.0
    return stratified_auc(score, forget, stratum(texts.words), times, texts.groups)


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
        if tells or any(_followed(score, values, forget, groups)):
            if not np.isnan(score).any():
                interval = stratified_auc(score, forget, strata, times, groups)
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
) -> Iterator[tuple[float, _Row]]:
    """Yield what scores follow of a confound (n,), of texts ``inside`` that have a value: the row,
    behind how far the near end of its interval is from chance, on a scale from 0 to 1."""
    here = inside & np.asarray(pa.array(values, from_pandas=True).is_valid())
    score, values, groups = score[here], values[here], None if groups is None else groups[here]
    if values.dtype == object:
        alike = np.zeros(len(score), dtype=np.int64)
        names, count = np.unique(values.astype(str), return_counts=True)
        for name in names[np.argsort(-count, kind="stable")[:_MOST_VALUES]]:
            if _are_enough(values == name, groups):
                interval = stratified_auc(score, values == name, alike, groups=groups)
                if interval and (beyond := _beyond(*(2 * x - 1 for x in interval))) >= FOLLOWED:
                    row = {"value": str(name), "measure": "auc_of_value"}
                    yield beyond, {**row, "estimate": interval[0]}
        return
    numbers = values.astype(np.float64)
    distinct, count = np.unique(numbers, return_counts=True)
    common = distinct[int(count.argmax())] if len(distinct) else 0.0
    if _number_of(values != common, groups) >= _FEWEST:
        interval = correlation(score, numbers, groups)
        if interval and (beyond := _beyond(*interval)) >= FOLLOWED:
            yield beyond, {"value": None, "measure": "spearman", "estimate": interval[0]}


def _beyond(estimate: float, low: float, high: float) -> float:
    """Return how far the near end of an interval is from 0, which is chance."""
    return 0.0 if low <= 0 <= high else min(abs(low), abs(high))


def _are_enough(positive: Mask, groups: GroupCodes | None) -> bool:
    return min(_number_of(side, groups) for side in (positive, ~positive)) >= _FEWEST


def _number_of(mask: Mask, groups: GroupCodes | None) -> int:
    """Return how many texts of a mask (n,) there are, or of their groups."""
    return int(mask.sum() if groups is None else len(np.unique(groups[mask])))


def correlation(a: Doubles, b: Doubles, groups: GroupCodes | None = None) -> Interval | None:
    """Return Spearman's correlation of (n,) and (n,), n > 3, with its interval; None of constants.

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
) -> Interval | None:
    """Return the AUC of scores (n,) over pairs within a stratum, with its interval.

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
        return None
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
    return estimate, *auc_ends(estimate, times * variance, texts, errors)
