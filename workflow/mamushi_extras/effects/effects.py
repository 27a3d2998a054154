"""The tables ``effects`` and ``subgroups``: what a removal changes in the NLL of held-out texts,
with errors over seeds and texts, and who pays for it.

Of forget texts it is the share of the gap from beta 0 to gold that is recovered, of retain texts
the change against gold, in nats per token. Gold has seen fewer texts and is worse on retain texts,
too; so the first share is net of them: the change on forget texts less that on retain texts, over
gold's. Lists of chance are models of one selector, ``random``:
the mean over a seed's lists is that seed's value, so that lists spread as between seeds.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.data.labels import TextProperties, read_texts
from mamushi.evaluation.intervals import Floats, finite_or_none
from mamushi.evaluation.sad import BASELINE
from mamushi.io import paths
from mamushi.io.columns import Table
from mamushi.io.files import read_json
from mamushi.io.tables import DOMAINS, FORGET, RETAIN, ranked_columns
from mamushi_extras.effects.cohort import Cohort, Rows, cohorts
from mamushi_extras.effects.contrasts import ONE_SEED, TWO_SEEDS, holm, pooled_variance
from mamushi_extras.effects.schemas import EFFECTS, SUBGROUPS

_Row = dict[str, Any]
MEASURES = ("recovered", "deep", "deep_net", "recovered_net")
_MOST_VALUES = 20  # Most of a label, the most frequent first; numbers of more are cut in three.


def tables(
    root: Path,
    grid: Mapping[str, Any],
    ranked: Collection[str],
    by_chance: Mapping[str, bool],
    margin: float,
) -> dict[Table, list[_Row]]:
    """Return both tables of a grid, of whose selectors the ``ranked`` ones rank texts, with a
    ``margin`` of retain NLL in nats per token."""
    changes, of_groups = list[_Row](), list[_Row]()
    for cohort in cohorts(grid, root):
        changes += effect_rows(cohort, grid, by_chance, margin)
        of_groups += group_rows(cohort, grid, ranked)
    return {EFFECTS: changes, SUBGROUPS: of_groups}


def effect_rows(
    cohort: Cohort, grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float
) -> list[_Row]:
    """Return the rows of ``effects`` of a dataset and model, whose comparisons are one family."""
    rows: list[_Row] = []
    for beta in sorted(grid["budgets"]):
        names: dict[str, list[str]] = {}
        for name in grid["selectors"]:
            selector = BASELINE if by_chance[name] else name
            names.setdefault(selector, []).append(arms.retrained_arm(name, beta))
        rows += _rows_at(cohort, float(beta), names, margin)
    compared = [row for row in rows if "p" in row]
    corrected = holm([row["p"] for row in compared])
    comparisons = int(np.isfinite(corrected).sum())
    for row, p in zip(compared, corrected, strict=True):
        row |= {"p_holm": finite_or_none(p), "comparisons": comparisons}
    return rows


def _rows_at(
    cohort: Cohort, beta: float, names: Mapping[str, Sequence[str]], margin: float
) -> Iterator[_Row]:
    """Yield the row of each selector at a budget, from the ``names`` of its arms."""
    cards = [
        [read_json(path) for path in cohort.files(paths.CARD, arm=arm)]
        for arm in ("gold", "beta0", *chain(*names.values()))
    ]
    head = {**cohort.cell, "beta": beta, "steps": cards[0][0]["settings"]["training"]["steps"]}
    head["equal_steps"] = len({tuple(card["steps"] for card in of_arm) for of_arm in cards}) == 1
    retain, gold = cohort.rows(RETAIN), cohort.nll("gold")
    # The last has the p of the family.
    shares = [_shares(cohort, names, column) for column in MEASURES]
    means = {name: nll.mean(axis=0) for name, nll in _nll_of_lists(cohort, names).items()}
    for selector, nll in means.items():
        change = cohort.contrast(retain, nll, gold)
        below = "yes" if change.high < margin else "no" if change.low > margin else "cannot be told"
        row = {**head, "selector": selector, "lists": len(names[selector]), "seeds": len(nll)}
        for of_measure in shares:
            row |= of_measure[selector]
        row |= change.columns("retain_change")
        row |= {"withheld": row["recovered_withheld"] or change.reason}
        row |= {"retain_margin": margin, "non_inferior": below}
        if selector != BASELINE and BASELINE in means:
            by_chance = cohort.contrast(retain, nll, means[BASELINE])
            row |= by_chance.columns("retain_vs_random")
        yield row


def _shares(cohort: Cohort, names: Mapping[str, Sequence[str]], column: str) -> dict[str, _Row]:
    """Return by selector the columns of a measure: the share of the gap in forget NLL that the mean
    over its lists recovers, and that less what ``random`` recovers, whose variance over seeds may
    be ``pooled`` over all lists. Of ``deep`` without word frequencies, of ``_net`` less the change
    on retain texts."""
    deep, net = column.startswith("deep"), column.endswith("_net")
    start, gold = (cohort.nll(arm, deep=deep) for arm in ("beta0", "gold"))
    rows = cohort.rows(*(DOMAINS if net else [FORGET]), deep=deep)
    lists = _nll_of_lists(cohort, names, deep=deep)
    means = {selector: nll.mean(axis=0) for selector, nll in lists.items()}
    by_list = cohort.mean_nll(rows, np.concatenate([*lists.values()]), net=net)
    gap = cohort.contrast(rows, gold, start, net=net).columns(f"{column}_gap")
    columns = {}
    for selector, nll in means.items():
        share = cohort.contrast(rows, nll, start, (start, gold), net=net)
        row = gap | share.share_columns(column)
        if selector != BASELINE and BASELINE in means:
            by_seed = cohort.mean_nll(rows, nll - means[BASELINE], net=net)
            factor = 1 / len(lists[selector]) + 1 / len(lists[BASELINE])
            pooled = pooled_variance(by_list, by_seed, factor)
            gained = cohort.contrast(rows, nll, means[BASELINE], (start, gold), pooled, net)
            row |= gained.columns(f"{column}_vs_random")
            row |= {"p": finite_or_none(gained.p), "pooled": pooled is not None}
        columns[selector] = row
    return columns


def _nll_of_lists(
    cohort: Cohort, names: Mapping[str, Sequence[str]], *, deep: bool = False
) -> dict[str, Floats]:
    """Return by selector the NLL (lists, S, n) under the models of its lists."""
    return {
        selector: np.array([cohort.nll(arm, deep=deep) for arm in of_selector])
        for selector, of_selector in names.items()
    }


def groups(
    texts: TextProperties, counted: NDArray[np.bool_]
) -> Iterator[tuple[str, str, str, Rows]]:
    """Yield the domain, column, value and rows of all groups of the texts that are ``counted``
    (n,): all, by length, and by each label.

    Thirds are of both domains together, so that a third has texts of one length in both.
    """
    for name, values in _group_values(texts, texts).items():
        for domain in DOMAINS:
            inside = counted & (texts.forget == (domain == FORGET))
            rows = np.flatnonzero(inside & (values != None))  # noqa: E711
            distinct, count = np.unique(values[rows].astype(str), return_counts=True)
            for value in distinct[np.argsort(-count, kind="stable")][:_MOST_VALUES].tolist():
                yield domain, name, value, rows[values[rows] == value]


def _group_values(texts: TextProperties, like: TextProperties) -> dict[str, NDArray[np.object_]]:
    """Return by column the value that a text is grouped by (n,), None where it has none. Numbers of
    many values are cut into thirds at the tertiles of ``like``."""

    def thirds(values: Floats, others: Floats, *names: str) -> NDArray[np.object_]:
        place = np.searchsorted(np.nanquantile(others, [1 / 3, 2 / 3]), values, side="left")
        named = np.array([*names, None], dtype=object)
        return named[np.where(np.isnan(values), -1, place)]

    columns = {"all": np.full(len(texts.words), "all", dtype=object)}
    columns["words"] = thirds(texts.words, like.words, "short", "medium", "long")
    for name, values in texts.labels.items():
        if values.dtype != object:
            others = like.labels[name]
            if np.unique(others[~np.isnan(others)]).size > _MOST_VALUES:
                values = thirds(values, others, "low", "middle", "high")
            else:
                values = np.array([None if v != v else f"{v:g}" for v in values], dtype=object)
        columns[name] = values
    return columns


def group_rows(cohort: Cohort, grid: Mapping[str, Any], ranked: Collection[str]) -> Iterator[_Row]:
    """Yield the rows of ``subgroups`` of a dataset and model."""
    examples = paths.under(cohort.root, paths.EXAMPLES, dataset=cohort.dataset)
    of_seeds = [
        texts["id"].filter(pc.equal(texts["domain"], FORGET))
        for texts in map(ranked_columns, cohort.examples)
    ]
    ids = pa.concat_arrays(of_seeds).unique()
    drawn = np.array([pc.is_in(ids, of_seed) for of_seed in of_seeds])
    values = _group_values(read_texts(examples, ids), cohort.texts)
    start, gold = cohort.nll("beta0"), cohort.nll("gold")
    all_groups = [*groups(cohort.texts, cohort.held_out["tokens"].to_numpy() > 0)]
    for selector, budget in product(grid["selectors"], sorted(grid["budgets"])):
        nll, on_list = cohort.nll(arms.retrained_arm(selector, budget)), None
        if selector in ranked:
            on_list = cohort.is_listed(ids, selector, paths.beta(budget))
        head = {**cohort.cell, "selector": selector, "beta": float(budget), "seeds": len(nll)}
        for domain, subgroup, value, rows in all_groups:
            row = {**head, "domain": domain, "subgroup": subgroup, "value": value}
            row |= {"texts": len(rows)}
            row |= cohort.contrast(rows, nll, start).columns("to_beta0")
            to_gold = cohort.contrast(rows, nll, gold)
            row |= to_gold.columns("to_gold") | {"withheld": to_gold.reason}
            if domain == FORGET:
                inside = drawn & (values[subgroup] == value)
                mean_ranked = inside.sum(axis=1).mean()
                row["ranked"] = round(mean_ranked)
                if on_list is not None and inside.any():
                    both, size = (on_list & inside).sum(axis=1), on_list.sum(axis=1)
                    row["listed"] = float(both.mean() / mean_ranked)
                    row["of_list"] = float((both / size).mean()) if size.all() else None
                share = cohort.contrast(rows, nll, start, (start, gold))
                row |= (
                    share.columns("recovered")
                    if share.reason in (None, ONE_SEED, TWO_SEEDS)
                    else {}
                )
            yield row
