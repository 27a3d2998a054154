"""Find what scores follow beside the domain: length, copies, labels, columns; intervals of 95%."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes, effective_share
from mamushi.data.labels import TextProperties
from mamushi.selection import metrics
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.folds import count_units
from mamushi.selection.metrics import NORMAL

Interval = tuple[float, float, float]  # An estimate with the ends of its interval.
Strata = NDArray[np.int64]

FEWEST = 10  # Texts that must have a value, or another one, before an interval is honest.
MOST_VALUES = 20  # Of a category, the most frequent first.
FOLLOWED = 0.3  # On a scale from -1 to 1, from where a score or a label follows something else.
STRATA = 10  # Of length, with about as many texts each.


def find_confounds(score: Doubles, forget: Mask, texts: TextProperties) -> list[dict[str, Any]]:
    """Return what scores (n,) surely follow within the forget domain, the closest first: the
    ``confound``, its ``value`` if that is a category, and the ``measure`` with its ``estimate``."""
    columns = {"words": texts.words, "copies": texts.copies, **texts.labels}
    rows = [
        (beyond, {"confound": name, **row})
        for name, values in columns.items()
        for beyond, row in _confounds_followed(score, values, forget, texts.groups)
    ]
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def leaking_columns(
    score: Doubles,
    forget: Mask,
    columns: Mapping[str, NDArray[Any]],
    groups: GroupCodes | None = None,
    times: float = 1.0,
) -> list[dict[str, Any]]:
    """Return the columns (n,) of a table that tell the domain, or that scores follow within the
    forget domain. Each has the AUC among texts of equal value with its interval, None where no
    value is of both domains. A column tells the domain by Pearson's chi-squared test, for all at
    once at 1%, and a Cramer's V without its bias (Bergsma, 2013) of at least ``FOLLOWED``. The
    AUC's interval is for ``times`` DeLong's variance."""
    rows = []
    for name, values in columns.items():
        # A stratum of equal values, or of close numbers, and one of texts without a value.
        strata = pd.factorize(values, sort=True)[0].astype(np.int64)
        if values.dtype != object and strata.max() >= STRATA:
            strata[strata >= 0] = stratum(values[strata >= 0])
        tells = _tells_domain(strata, forget, 0.01 / len(columns), groups)
        if tells or any(_confounds_followed(score, values, forget, groups)):
            is_scored = not np.isnan(score).any()
            interval = stratified_auc(score, forget, strata, times, groups) if is_scored else None
            ends = dict(zip(("auc", "low", "high"), interval or (None,) * 3, strict=True))
            rows.append({"column": name, "tells": tells, **ends})
    return rows


def _tells_domain(strata: Strata, forget: Mask, level: float, groups: GroupCodes | None) -> bool:
    from scipy.stats import chi2, chi2_contingency

    table = pd.crosstab(strata, forget).to_numpy()
    if min(table.shape) < 2:
        return False
    quotient = chi2_contingency(table, correction=False).statistic / len(strata)
    free, alone = len(table) - 1, len(strata) * effective_share(groups)
    room = min(free - free**2 / (alone - 1), 1 - 1 / (alone - 1)) if alone > 2 else 0.0
    unbiased = (quotient - free / (alone - 1)) / room if room > 0 else 0.0
    return bool(chi2.sf(quotient * alone, free) < level and unbiased >= FOLLOWED**2)


def stratum(values: Doubles) -> Strata:
    """Return the stratum (n,) of numbers, of at most ``STRATA`` with about as many texts each."""
    edges = np.unique(np.quantile(values, np.arange(1, STRATA) / STRATA))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _confounds_followed(
    score: Doubles, values: NDArray[Any], inside: Mask, groups: GroupCodes | None
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield what scores follow of a confound (n,), of texts ``inside`` that have a value: the row,
    behind how far the near end of its interval is from chance, on a scale from 0 to 1."""
    here = inside & ~pd.isna(values)
    score, values, groups = score[here], values[here], None if groups is None else groups[here]
    names, count = np.unique(values, return_counts=True)
    measured = list[tuple[str | None, str, Interval | None]]()
    if values.dtype == object:
        alike = np.zeros(len(score), dtype=np.int64)
        for name in names[np.argsort(-count, kind="stable")[:MOST_VALUES]]:
            if are_enough(values == name, groups):
                interval = stratified_auc(score, values == name, alike, groups=groups)
                measured.append((str(name), "auc_of_value", interval))
    elif len(names) and count_units(values != names[count.argmax()], groups) >= FEWEST:
        measured.append((None, "spearman", correlation(score, values, groups)))
    for value, measure, interval in measured:
        if interval:
            estimate, low, high = interval
            beyond = max(low, -high) if value is None else max(2 * low - 1, 1 - 2 * high)
            if beyond >= FOLLOWED:
                yield beyond, {"value": value, "measure": measure, "estimate": estimate}


def are_enough(positive: Mask, groups: GroupCodes | None) -> bool:
    """Return whether an interval can be told of texts that are ``positive`` (n,) and others."""
    return min(count_units(side, groups) for side in (positive, ~positive)) >= FEWEST


def correlation(a: Doubles, b: Doubles, groups: GroupCodes | None = None) -> Interval | None:
    """Return Spearman's correlation of (n,) and (n,), n > 3, with its interval; None of constants.

    Fisher's z with the standard error sqrt((1 + r^2 / 2) / (n - 3)) of Bonett and Wright (2000).
    By ``groups`` (n,) it is times the root of what the variance of sums over groups of
    a b - r (a^2 + b^2) / 2, of standardised ranks, is of that of independent texts, if more.
    """
    r = metrics.spearman(a, b)
    if r is None:
        return None
    r = min(max(r, -1.0), 1.0)
    half = NORMAL * np.sqrt((1 + r**2 / 2) / (len(a) - 3))
    if groups is not None:
        ranks = np.stack([metrics.average_ranks(a), metrics.average_ranks(b)])
        ranks = (ranks - ranks.mean(axis=1, keepdims=True)) / ranks.std(axis=1, keepdims=True)
        products = ranks[0] * ranks[1] - r * (ranks**2).sum(axis=0) / 2
        apart, together = (products**2).sum(), (np.bincount(groups, products) ** 2).sum()
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
    """Return the AUC of scores (n,) over pairs within a stratum, with its interval: the mean over
    strata, weighted by their positives; those with fewer than two of either are left out, None if
    all are. The interval is that of ``auc_ends``, for ``times`` the sampling variance."""
    members = [np.flatnonzero(strata == number) for number in np.unique(strata)]
    members = [rows for rows in members if min(positive[rows].sum(), (~positive[rows]).sum()) >= 2]
    if not members:
        return None
    placed = [metrics.placements(score[rows], positive[rows]) for rows in members]
    sizes = np.array([[len(above), len(below)] for above, below in placed])
    weight, used = sizes[:, 0] / sizes[:, 0].sum(), np.concatenate(members)
    estimate = float(weight @ [float(above.mean()) for above, _ in placed])
    clusters = metrics.clusters_of(None if groups is None else groups[used], positive[used])
    if clusters is None:
        variance = weight**2 @ [metrics.sampling_error(*pair).variance for pair in placed]
        ends = metrics.auc_ends(estimate, times * float(variance), int(sizes.min(axis=1).sum()))
        return estimate, *ends
    # As if of one stratum, each text with what it weighs.
    scales = weight[:, None] * sizes.sum(axis=0) / sizes
    above, below = (
        np.concatenate([k * (x - x.mean()) for k, x in zip(scale, side, strict=True)])
        for scale, side in zip(scales.T, zip(*placed, strict=True), strict=True)
    )
    error = metrics.sampling_error(above, below, clusters)
    return estimate, *metrics.auc_ends(estimate, times * error.variance, error.texts, error.errors)
