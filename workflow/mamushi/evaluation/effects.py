"""The tables ``effects`` and ``subgroups``: what a removal changes in the NLL of held-out texts,
with errors over seeds and texts, and who pays for it.

Of forget texts it is the share of the gap from beta 0 to gold that is recovered, of retain texts
the change against gold, in nats per token. Lists of chance are models of one selector, ``random``:
the mean over a seed's lists is that seed's value, so that lists spread as between seeds.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.data.labels import TextProperties, read_texts
from mamushi.evaluation.cohort import NOT_RAKED, Cohort, TextSet, cohorts
from mamushi.evaluation.intervals import Effect, Floats, finite_or_none, holm, pooled_variance
from mamushi.evaluation.sad import BASELINE
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import FORGET, INFERENCE, RETAIN, read_table

YES, NO, UNKNOWN = "yes", "no", "cannot be told"
_Row = dict[str, Any]
_MOST_VALUES = 20  # Most of a label, the most frequent first; numbers of more are cut in three.
THIRDS = ("short", "medium", "long"), ("low", "middle", "high")


@dataclass(frozen=True)
class BudgetModels:
    """What the models of one budget make of n held-out texts, sums of the NLL in nats.

    ``lists`` has by selector those of its lists (L, S, n), of which only ``random`` has several;
    ``gap`` those of beta 0 and gold (S, n). ``forget`` and ``retain`` are the texts to judge by.
    """

    lists: Mapping[str, Floats]
    gap: tuple[Floats, Floats]
    forget: TextSet
    retain: TextSet

    @classmethod
    def read(
        cls, cohort: Cohort, retrained: Mapping[str, str], by_chance: Mapping[str, bool], deep: bool
    ) -> Self:
        """Read them of the arms ``retrained``, by selector; with ``deep`` the NLL without word
        frequencies, of the texts of which it is known."""
        lists: dict[str, list[Floats]] = {}
        for name, arm in retrained.items():
            nll = cohort.nll(arm, deep=deep)
            lists.setdefault(BASELINE if by_chance[name] else name, []).append(nll)
        return cls(
            {name: np.array(several) for name, several in lists.items()},
            (cohort.nll("beta0", deep=deep), cohort.nll("gold", deep=deep)),
            cohort.texts_of(FORGET, deep=deep),
            cohort.texts_of(RETAIN, deep=deep),
        )

    def nll(self, selector: str) -> Floats:
        """Return the mean over the lists of a selector (S, n)."""
        return np.asarray(self.lists[selector].mean(axis=0))

    def recovered(self, selector: str) -> Effect:
        """Return the share of the gap in forget NLL that a selector recovers."""
        return self.forget.contrast(self.nll(selector), self.gap[0], self.gap)

    def gained(self, selector: str) -> tuple[Effect, bool]:
        """Return that share less what ``random`` recovers, and whether its variance over seeds is
        pooled over all lists of the budget."""
        a, b = self.nll(selector), self.nll(BASELINE)
        every = np.concatenate(list(self.lists.values()))
        by_arm, by_seed = (
            nll[..., self.forget.rows].sum(axis=-1) / self.forget.tokens.sum()
            for nll in (every, a - b)
        )
        factor = 1 / len(self.lists[selector]) + 1 / len(self.lists[BASELINE])
        pooled = pooled_variance(by_arm, by_seed, factor)
        return self.forget.contrast(a, b, self.gap, pooled), pooled is not None


def effects_table(
    grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float, root: str | Path
) -> pa.Table:
    """Return the table ``effects`` of a grid; ``margin`` of retain NLL in nats per token. The
    comparisons of a dataset and model are one family."""
    rows: list[_Row] = []
    for cohort in cohorts(grid, root):
        family = list(_effect_rows(cohort, grid, by_chance, margin))
        known_p = [np.nan if effect is None else effect.p for _, effect in family]
        comparisons = int(np.count_nonzero(~np.isnan(known_p)))
        for (row, effect), corrected in zip(family, holm(known_p), strict=True):
            if effect is not None:
                row |= {"p_holm": finite_or_none(corrected), "comparisons": comparisons}
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.EFFECTS.schema)


def _effect_rows(
    cohort: Cohort, grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float
) -> Iterator[tuple[_Row, Effect | None]]:
    """Yield the row of each budget and selector, and the share of the gap that it recovers beyond
    ``random``; None for ``random`` itself, or where it was not run."""
    for beta in sorted(grid["budgets"]):
        retrained = {name: arms.retrained(name, beta) for name in grid["selectors"]}
        cards = [
            [read_json(path) for path in cohort.files(paths.CARD, arm=arm)]
            for arm in ("gold", "beta0", *retrained.values())
        ]
        steps = {tuple(card["steps"] for card in of_arm) for of_arm in cards}
        counted = cards[0][0]["settings"]["training"]["steps"]
        head = {
            **cohort.cell,
            "beta": float(beta),
            "steps": counted,
            "equal_steps": len(steps) == 1,
        }
        budget = BudgetModels.read(cohort, retrained, by_chance, False)
        deep = None
        if cohort.is_raked.any():
            deep = BudgetModels.read(cohort, retrained, by_chance, True)
        for selector, lists in budget.lists.items():
            nll, gained = budget.nll(selector), None
            recovered = budget.recovered(selector)
            retain = budget.retain.contrast(nll, budget.gap[1])
            row = {**head, "selector": selector, "lists": len(lists), "seeds": len(nll)}
            row |= recovered.share_columns("recovered") | retain.columns("retain_change")
            row |= {"retain_margin": margin, "non_inferior": non_inferior(retain, margin)}
            row |= {"withheld": recovered.reason or retain.reason, "deep_withheld": NOT_RAKED}
            if deep is not None:
                share, gap = deep.recovered(selector), deep.forget.contrast(*deep.gap[::-1])
                row |= share.share_columns("deep") | {"deep_withheld": share.reason}
                row |= gap.columns("deep_gap")
            if selector != BASELINE and BASELINE in budget.lists:
                gained, row["pooled"] = budget.gained(selector)
                by_retain = budget.retain.contrast(nll, budget.nll(BASELINE))
                row |= gained.columns("recovered_vs_random") | {"p": finite_or_none(gained.p)}
                row |= by_retain.columns("retain_vs_random")
                if deep is not None:
                    row |= deep.gained(selector)[0].columns("deep_vs_random")
            yield row, gained


def non_inferior(change: Effect, margin: float) -> str:
    """Say whether a change of NLL, nats per token, is below a margin above 0."""
    if change.high < margin:
        return YES
    return NO if change.low > margin else UNKNOWN


class Group(NamedTuple):
    """The texts (rows,) of one domain with one value of a column."""

    domain: str
    subgroup: str
    value: str
    rows: NDArray[np.int64]


def groups(texts: TextProperties, counted: NDArray[np.bool_]) -> list[Group]:
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


def _columns(texts: TextProperties, like: TextProperties) -> dict[str, NDArray[np.object_]]:
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
    rows = [row for cohort in cohorts(grid, root) for row in _group_rows(cohort, grid, ranked)]
    return pa.Table.from_pylist(rows, schema=schemas.SUBGROUPS.schema)


def _group_rows(cohort: Cohort, grid: Mapping[str, Any], ranked: Collection[str]) -> Iterator[_Row]:
    table = read_table(cohort.examples, schemas.EXAMPLES, ["id", "domain", "section"])
    here = pc.and_(pc.equal(table["domain"], FORGET), pc.equal(table["section"], INFERENCE))
    ids = table["id"].filter(here).to_pylist()
    columns = _columns(read_texts(cohort.examples, ids), cohort.texts)
    gap, listed_groups = (
        (cohort.nll("beta0"), cohort.nll("gold")),
        groups(cohort.texts, cohort.tokens > 0),
    )
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll, on_list = cohort.nll(arms.retrained(selector, budget)), None
        if selector in ranked:
            files = cohort.files(paths.REMOVAL, selector=selector, beta=paths.beta(budget))
            lists = [read_table(path, schemas.REMOVALS, ["id"])["id"] for path in files]
            on_list = np.array([np.isin(ids, listed.to_pylist()) for listed in lists])
        for domain, subgroup, value, rows in listed_groups:
            texts, seeds = cohort.subset(rows), len(cohort.seeds)
            row = {**cohort.cell, "selector": selector, "beta": float(budget), "domain": domain}
            row |= {"subgroup": subgroup, "value": value, "texts": len(rows), "seeds": seeds}
            row |= texts.contrast(nll, gap[0]).columns("to_beta0")
            row |= texts.contrast(nll, gap[1]).columns("to_gold")
            if domain == FORGET:
                row |= _listed(columns[subgroup] == value, on_list)
                share = texts.contrast(nll, gap[0], gap)
                row |= share.columns("recovered") if np.isfinite(share.low) else {}
            yield row


def _listed(inside: NDArray[np.bool_], on_list: NDArray[np.bool_] | None) -> _Row:
    """Return, of the ranked texts ``inside`` a group (n1,), how many there are, the share that is
    listed and their share in the list: means over seeds, whose lists ``on_list`` (S, n1) has."""
    shares: _Row = {"ranked": int(inside.sum())}
    if on_list is not None and inside.any():
        both, size = (on_list & inside).sum(axis=1), on_list.sum(axis=1)
        shares["listed"] = float(both.mean() / inside.sum())
        shares["of_list"] = float((both / size).mean()) if size.all() else None
    return shares
