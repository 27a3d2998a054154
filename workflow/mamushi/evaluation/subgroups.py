"""Who pays, and who is removed: lists, and the loss of held-out texts, by what is known of texts.

The change of a group is that of its mean NLL per predicted token, from beta 0 (nothing removed) and
to the gold standard (all removed); above 0 the group is predicted worse than there. A forget domain
of several parts has a row for each of them, if a column tells them apart.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.data.labels import Labelled, read_labels
from mamushi.evaluation.cohort import RETRAINING_SOURCE, Cohort, ModelSource, cohorts
from mamushi.evaluation.crossed import contrast
from mamushi.evaluation.paired import finite_or_none
from mamushi.evaluation.sad import Floats
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, INFERENCE, RETAIN, read_table

_MOST_VALUES = 20  # Most of a label, the most frequent first; numbers of more are cut in three.
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
    parts = []
    for name, values in _columns(texts, texts).items():
        for domain, inside in ((FORGET, texts.forget), (RETAIN, ~texts.forget)):
            has_value = np.array([value is not None for value in values])
            eligible = np.flatnonzero(inside & counted & has_value)
            distinct, place, count = np.unique(
                values[eligible].astype(str), return_inverse=True, return_counts=True
            )
            for i in np.argsort(-count, kind="stable")[:_MOST_VALUES]:
                parts.append(Group(domain, name, str(distinct[i]), eligible[place == i]))
    return parts


def _columns(texts: Labelled, like: Labelled) -> dict[str, NDArray[np.object_]]:
    """Return the group's name of each text (n,) by column, None where a text has no value.

    Numbers of many values are cut into thirds at the tertiles of ``like``.
    """
    names_of = {
        "all": np.full(len(texts.words), "all", dtype=object),
        "words": _thirds(texts.words, THIRDS[0], like.words),
    }
    for name, values in texts.labels.items():
        names_of[name] = values if values.dtype == object else _name(values, like.labels[name])
    return names_of


def _name(values: Floats, like: Floats) -> NDArray[np.object_]:
    """Return numbers (n,) as the names of their values or thirds; None for NaN."""
    distinct = np.unique(like[~np.isnan(like)])
    if len(distinct) > _MOST_VALUES:
        return _thirds(values, THIRDS[1], like)
    return np.array([None if np.isnan(v) else f"{v:g}" for v in values], dtype=object)


def _thirds(values: Floats, names: Sequence[str], like: Floats) -> NDArray[np.object_]:
    edges = np.nanquantile(like, [1 / 3, 2 / 3])
    place = np.searchsorted(edges, values, side="left")
    shown = [None if np.isnan(v) else names[p] for v, p in zip(values, place, strict=True)]
    return np.array(shown, dtype=object)


def compared(
    cohort: Cohort, after: Floats, before: Floats, rows: NDArray[np.int64], *, share: bool = False
) -> Sequence[float | None]:
    """Compare the NLL of the texts ``rows`` under models ``after`` and ``before`` a removal.

    Both are summed NLL (S, n) in nats. Return the change per token or, with ``share``, the part of
    the gap from ``before`` to gold that is recovered, with its 95% interval (``crossed.contrast``).
    None where a number is not defined.
    """
    groups = cohort.texts.groups
    codes = None if groups is None else groups[rows]
    ends: dict[str, Any] = {}
    if share:
        ends = {"beta0": before[:, rows], "gold": cohort.gold[:, rows]}
    effect = contrast(after[:, rows], before[:, rows], cohort.tokens[rows], codes, **ends)
    estimates = [finite_or_none(value) for value in (effect.estimate, effect.low, effect.high)]
    return [None] * 3 if share and None in estimates else estimates


class RankedTexts:
    """The n1 forget texts that the selectors of a cohort rank, and their columns."""

    def __init__(self, cohort: Cohort) -> None:
        examples = paths.under(cohort.root, paths.EXAMPLES, dataset=cohort.dataset)
        table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section"])
        here = pc.and_(pc.equal(table["domain"], FORGET), pc.equal(table["section"], INFERENCE))
        self.ids = table["id"].filter(here).combine_chunks()
        texts = read_labels(examples, self.ids.to_pylist(), do="run again")
        self.columns = _columns(texts, cohort.texts)

    def on(self, lists: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which texts the list of each seed has, (S, n1)."""
        by_seed = (pa.array(ids, pa.string()) for ids in lists)
        return np.array([pc.is_in(self.ids, value_set=ids).to_numpy(False) for ids in by_seed])

    def listed(self, part: Group, on: NDArray[np.bool_] | None) -> dict[str, Any]:
        """Return, of the texts of a group, how many there are, the share that is listed and their
        share in the list: means over seeds, whose lists ``on`` (S, n1) has. None of retain."""
        if part.domain == RETAIN:
            return {}
        inside = self.columns[part.subgroup] == part.value
        shares: dict[str, Any] = {"ranked": int(inside.sum())}
        if on is not None and inside.any():
            both, size = (on & inside).sum(axis=1), on.sum(axis=1)
            shares["listed"] = float(both.mean() / inside.sum())
            shares["of_list"] = float((both / size).mean()) if size.all() else None
        return shares


def subgroups_table(
    grid: Mapping[str, Any], ranked: Collection[str], root: str | Path = "results"
) -> pa.Table:
    """Return the table ``subgroups`` of a grid, from the NLL of every held-out text.

    Selectors that are not in ``ranked`` have no lists of texts.
    """
    rows = [row for cohort in cohorts(grid, root) for row in _rows(cohort, grid, ranked)]
    return pa.Table.from_pylist(rows, schema=schemas.SUBGROUPS.schema)


def _rows(
    cohort: Cohort, grid: Mapping[str, Any], listing: Collection[str]
) -> Iterator[dict[str, Any]]:
    beta0 = cohort.nll("beta0")
    parts, ranked = groups(cohort.texts, cohort.counted), RankedTexts(cohort)
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll = cohort.nll(arms.retrained(selector, budget))
        source = ModelSource(RETRAINING_SOURCE, selector, budget)
        on = ranked.on(cohort.lists(source)) if selector in listing else None
        for part in parts:
            here = part.rows
            row = ranked.listed(part, on) | {
                **cohort.at,
                **{"selector": selector, "beta": float(budget), "domain": part.domain},
                **{"subgroup": part.subgroup, "value": part.value},
                **{"texts": len(here), "seeds": len(cohort.seeds)},
            }
            for name, before in (("to_beta0", beta0), ("to_gold", cohort.gold)):
                row |= _named(name, compared(cohort, nll, before, here))
            if part.domain == FORGET:
                row |= _named("recovered", compared(cohort, nll, beta0, here, share=True))
            yield row


def _named(name: str, ends: Sequence[float | None]) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
