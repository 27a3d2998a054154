"""Who pays, and who is removed: lists, and the loss of held-out texts, by what is known of texts.

The change of a group is that of its mean NLL per predicted token, from beta 0 (nothing removed) and
to the gold standard (all removed); above 0 the group is predicted worse than there. A forget domain
of several parts has a row for each of them, if a column tells them apart.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.data.labels import Labelled, read_labels
from mamushi.evaluation.cohort import RETRAINING_SOURCE, Cohort, ModelSource, cohorts
from mamushi.evaluation.crossed import contrast
from mamushi.evaluation.effects import ends_of
from mamushi.evaluation.sad import Floats
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, INFERENCE, RETAIN, read_table

_MOST_VALUES = 20  # Most of a label, the most frequent first; numbers of more are cut in three.
THIRDS = ("short", "medium", "long"), ("low", "middle", "high")


class Group(NamedTuple):
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
        has_value = counted & np.array([value is not None for value in values])
        for domain, inside in ((FORGET, texts.forget), (RETAIN, ~texts.forget)):
            eligible = np.flatnonzero(inside & has_value)
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
    examples = paths.under(cohort.root, paths.EXAMPLES, dataset=cohort.dataset)
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section"])
    here = pc.and_(pc.equal(table["domain"], FORGET), pc.equal(table["section"], INFERENCE))
    ids = table["id"].filter(here).combine_chunks()
    columns = _columns(read_labels(examples, ids.to_pylist(), do="run again"), cohort.texts)
    beta0, parts = cohort.nll("beta0"), groups(cohort.texts, cohort.counted)
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll, on = cohort.nll(arms.retrained(selector, budget)), None
        if selector in listing:
            lists = cohort.lists(ModelSource(RETRAINING_SOURCE, selector, budget))
            by_seed = (pa.array(listed, pa.string()) for listed in lists)
            on = np.array([pc.is_in(ids, value_set=listed).to_numpy(False) for listed in by_seed])
        for domain, subgroup, value, texts in parts:
            row = {
                **{**cohort.at, "selector": selector, "beta": float(budget), "domain": domain},
                **{"subgroup": subgroup, "value": value, "texts": len(texts)},
                "seeds": len(cohort.seeds),
            }
            for name, before in (("to_beta0", beta0), ("to_gold", cohort.gold)):
                row |= _compared(name, cohort, nll, before, texts)
            if domain == FORGET:
                row |= _listed(columns[subgroup] == value, on)
                share = _compared("recovered", cohort, nll, beta0, texts, share=True)
                row |= dict.fromkeys(share) if None in share.values() else share
            yield row


def _listed(inside: NDArray[np.bool_], on: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Return, of the ranked texts ``inside`` a group (n1,), how many there are, the share that is
    listed and their share in the list: means over seeds, whose lists ``on`` (S, n1) has."""
    shares: dict[str, Any] = {"ranked": int(inside.sum())}
    if on is not None and inside.any():
        both, size = (on & inside).sum(axis=1), on.sum(axis=1)
        shares["listed"] = float(both.mean() / inside.sum())
        shares["of_list"] = float((both / size).mean()) if size.all() else None
    return shares


def _compared(
    name: str,
    cohort: Cohort,
    after: Floats,
    before: Floats,
    rows: NDArray[np.int64],
    *,
    share: bool = False,
) -> dict[str, float | None]:
    """Compare the NLL of the texts ``rows`` under models ``after`` and ``before`` a removal.

    Both are summed NLL (S, n) in nats. Return the columns of the change per token or, with
    ``share``, of the part of the gap from ``before`` to gold that is recovered, with its 95%
    interval (``crossed.contrast``).
    """
    codes = None if cohort.texts.groups is None else cohort.texts.groups[rows]
    ends: dict[str, Any] = {}
    if share:
        ends = {"beta0": before[:, rows], "gold": cohort.gold[:, rows]}
    return ends_of(
        name, contrast(after[:, rows], before[:, rows], cohort.tokens[rows], codes, **ends)
    )
