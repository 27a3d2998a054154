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
    listed = []
    for name, values in _columns(texts, texts).items():
        for domain, inside in ((FORGET, texts.forget), (RETAIN, ~texts.forget)):
            rows = np.flatnonzero(inside & counted & (values != None))  # noqa: E711
            distinct, place, count = np.unique(
                values[rows].astype(str), return_inverse=True, return_counts=True
            )
            for i in np.argsort(-count, kind="stable")[:_MOST_VALUES]:
                listed.append(Group(domain, name, str(distinct[i]), rows[place == i]))
    return listed


def _columns(texts: Labelled, like: Labelled) -> dict[str, NDArray[np.object_]]:
    """Return the group's name of each text (n,) by column, None where a text has no value.

    Numbers of many values are cut into thirds at the tertiles of ``like``.
    """
    names_of = {
        "all": np.full(len(texts.words), "all", dtype=object),
        "words": _thirds(texts.words, THIRDS[0], like.words),
    }
    for name, values in texts.labels.items():
        if values.dtype == object:
            names_of[name] = values
        elif np.unique(like.labels[name][~np.isnan(like.labels[name])]).size > _MOST_VALUES:
            names_of[name] = _thirds(values, THIRDS[1], like.labels[name])
        else:
            names_of[name] = np.array([None if v != v else f"{v:g}" for v in values], object)
    return names_of


def _thirds(values: Floats, names: Sequence[str], like: Floats) -> NDArray[np.object_]:
    place = np.searchsorted(np.nanquantile(like, [1 / 3, 2 / 3]), values, side="left")
    named = np.array(names, object)[place]
    named[np.isnan(values)] = None
    return named


def subgroups_table(
    grid: Mapping[str, Any], ranked: Collection[str], root: str | Path = "results"
) -> pa.Table:
    """Return the table ``subgroups`` of a grid, from the NLL of every held-out text.

    Selectors that are not in ``ranked`` have no lists of texts.
    """
    rows = [row for cohort in cohorts(grid, root) for row in _rows(cohort, grid, ranked)]
    return pa.Table.from_pylist(rows, schema=schemas.SUBGROUPS.schema)


def _rows(
    cohort: Cohort, grid: Mapping[str, Any], ranked: Collection[str]
) -> Iterator[dict[str, Any]]:
    examples = paths.under(cohort.root, paths.EXAMPLES, dataset=cohort.dataset)
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section"])
    here = pc.and_(pc.equal(table["domain"], FORGET), pc.equal(table["section"], INFERENCE))
    ids = table["id"].filter(here).to_pylist()
    columns = _columns(read_labels(examples, ids, do="run again"), cohort.texts)
    beta0, listed_groups = cohort.nll("beta0"), groups(cohort.texts, cohort.tokens > 0)
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll, on_list = cohort.nll(arms.retrained(selector, budget)), None
        if selector in ranked:
            lists = cohort.lists(ModelSource(RETRAINING_SOURCE, selector, budget))
            on_list = np.array([np.isin(ids, listed) for listed in lists])
        for domain, subgroup, value, rows in listed_groups:
            texts, seeds = cohort.subset(rows), len(cohort.seeds)
            row = {**cohort.at, "selector": selector, "beta": float(budget), "domain": domain}
            row |= {"subgroup": subgroup, "value": value, "texts": len(rows), "seeds": seeds}
            row |= ends_of("to_beta0", texts.contrast(nll, beta0))
            row |= ends_of("to_gold", texts.contrast(nll, cohort.gold))
            if domain == FORGET:
                row |= _listed(columns[subgroup] == value, on_list)
                share = texts.contrast(nll, beta0, (beta0, cohort.gold))
                row |= ends_of("recovered", share) if np.isfinite(share.low) else {}
            yield row


def _listed(inside: NDArray[np.bool_], on_list: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Return, of the ranked texts ``inside`` a group (n1,), how many there are, the share that is
    listed and their share in the list: means over seeds, whose lists ``on_list`` (S, n1) has."""
    shares: dict[str, Any] = {"ranked": int(inside.sum())}
    if on_list is not None and inside.any():
        both, size = (on_list & inside).sum(axis=1), on_list.sum(axis=1)
        shares["listed"] = float(both.mean() / inside.sum())
        shares["of_list"] = float((both / size).mean()) if size.all() else None
    return shares
