"""Who pays: how the loss of held-out texts changes, by what is known of them.

The change of a group is that of its mean NLL per predicted token, from beta 0 (nothing removed) and
to the gold standard (all removed); above 0 the group is predicted worse than there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import FORGET, RETAIN
from mamushi.configuration import arms
from mamushi.data.labels import Labelled
from mamushi.evaluation.cohort import Cohort, cohorts
from mamushi.evaluation.paired import half_width
from mamushi.evaluation.sad import Floats

FEWEST = 10  # Texts below which a group has no interval.
VALUES = 20  # Most of a label, the most frequent first; numbers of more are cut in three.
THIRDS = ("short", "medium", "long"), ("low", "middle", "high")


@dataclass(frozen=True)
class Group:
    """The texts (rows,) of one domain with one value of a column."""

    domain: str
    subgroup: str
    value: str
    rows: NDArray[np.int64]


def groups(texts: Labelled, counted: NDArray[np.bool_]) -> list[Group]:
    """Return all groups of the texts that are ``counted`` (n,): all, by length, and by each label.

    Thirds are of both domains together, so that a third has texts of one length in both.
    """
    columns: dict[str, NDArray[Any]] = {
        "all": np.full(len(texts.words), "all", dtype=object),
        "words": _thirds(texts.words, THIRDS[0]),
    }
    for name, values in texts.labels.items():
        columns[name] = values if values.dtype == object else _name(values)
    found = []
    for name, values in columns.items():
        for domain, inside in ((FORGET, texts.forget), (RETAIN, ~texts.forget)):
            has_value = np.array([value is not None for value in values])
            there = np.flatnonzero(inside & counted & has_value)
            known, place, count = np.unique(
                values[there].astype(str), return_inverse=True, return_counts=True
            )
            for i in np.argsort(-count, kind="stable")[:VALUES]:
                found.append(Group(domain, name, str(known[i]), there[place == i]))
    return found


def _name(values: Floats) -> NDArray[np.object_]:
    """Return numbers (n,) as the names of their values or thirds; None for NaN."""
    known = np.unique(values[~np.isnan(values)])
    if len(known) > VALUES:
        return _thirds(values, THIRDS[1])
    return np.array([None if np.isnan(v) else f"{v:g}" for v in values], dtype=object)


def _thirds(values: Floats, names: Sequence[str]) -> NDArray[np.object_]:
    edges = np.nanquantile(values, [1 / 3, 2 / 3])
    place = np.searchsorted(edges, values, side="left")
    shown = [None if np.isnan(v) else names[p] for v, p in zip(values, place, strict=True)]
    return np.array(shown, dtype=object)


def change(
    after: Floats, before: Floats, tokens: Floats
) -> tuple[float, float | None, float | None]:
    """Return the mean change of NLL per token of n texts over S seeds, with its 95% interval.

    ``after``, ``before`` (S, n): sums of the NLL in nats; ``tokens`` (n,). The variance over texts
    is that of the linearised ratio of their seed means. No interval of fewer than ``FEWEST`` texts.
    """
    n, total = after.shape[1], tokens.sum()
    difference = after - before
    by_seed = difference.sum(axis=1) / total
    mean = float(by_seed.mean())
    if n < FEWEST:
        return mean, None, None
    residual = difference.mean(axis=0) - mean * tokens
    half = half_width(by_seed, float(residual.var(ddof=1) * n / total**2), n - 1)
    return mean, mean - half, mean + half


def subgroups_table(grid: Mapping[str, Any], root: str | Path = "results") -> pa.Table:
    """Return the table ``subgroups`` of a grid, from what every model measured of every text.

    Raises ``UserError`` that names the first file that is missing, damaged or of other texts.
    """
    rows = [row for cohort in cohorts(grid, root) for row in _rows(cohort, grid)]
    return pa.Table.from_pylist(rows, schema=schemas.SUBGROUPS.schema)


def _rows(cohort: Cohort, grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    beta0, tokens = cohort.nll("beta0"), cohort.tokens
    parts = groups(cohort.texts, cohort.counted)
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll = cohort.nll(arms.retrained(selector, budget))
        for part in parts:
            here = part.rows
            row = {
                **cohort.at,
                **{"selector": selector, "beta": float(budget), "domain": part.domain},
                **{"subgroup": part.subgroup, "value": part.value},
                **{"texts": len(here), "seeds": len(cohort.seeds)},
            }
            for name, before in (("to_beta0", beta0), ("to_gold", cohort.gold)):
                ends = change(nll[:, here], before[:, here], tokens[here])
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            yield row
