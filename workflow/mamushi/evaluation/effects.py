"""The table ``effects``: what a removal changes in the NLL of held-out texts, with its errors.

Signed changes in place of SAD: of forget texts the share of the gap from beta 0 to gold that is
recovered, of retain texts the change against gold, in nats per token. Errors are over seeds and
texts (``crossed``). Lists of chance are models of one selector, ``random``: the mean over a seed's
lists is that seed's value, so that lists spread as they do between seeds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.config import arms
from mamushi.evaluation.cohort import NOT_RAKED, Cohort, TextSet, cohorts
from mamushi.evaluation.crossed import Effect, pooled_variance
from mamushi.evaluation.paired import finite_or_none, holm
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.summary import BASELINE
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import FORGET, RETAIN

YES, NO, UNKNOWN = "yes", "no", "cannot be told"
_Row = dict[str, Any]


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
        effect = self.forget.contrast(a, b, self.gap, pooled)
        return effect, pooled is not None


def non_inferior(change: Effect, margin: float) -> str:
    """Say whether a change of NLL, nats per token, is below a margin above 0."""
    if change.high < margin:
        return YES
    return NO if change.low > margin else UNKNOWN


def rows_of_budget(
    budget: BudgetModels, margin: float, deep: BudgetModels | None
) -> Iterator[tuple[_Row, Effect | None]]:
    """Yield the row of each selector of a budget, and the share of the gap that it recovers beyond
    ``random``; None for ``random`` itself, or where it was not run. ``deep`` are the same models on
    the texts whose NLL is known without word frequencies.
    """
    for selector, lists in budget.lists.items():
        nll, gained = budget.nll(selector), None
        recovered = budget.recovered(selector)
        retain = budget.retain.contrast(nll, budget.gap[1])
        row: _Row = {"selector": selector, "lists": len(lists), "seeds": len(nll)}
        row |= share_columns("recovered", recovered) | ends_of("retain_change", retain)
        row |= {"retain_margin": margin, "non_inferior": non_inferior(retain, margin)}
        row |= {"withheld": recovered.reason or retain.reason, "deep_withheld": NOT_RAKED}
        if deep is not None:
            share = deep.recovered(selector)
            row |= share_columns("deep", share) | {"deep_withheld": share.reason}
            row |= ends_of("deep_gap", deep.forget.contrast(*deep.gap[::-1]))
        if selector != BASELINE and BASELINE in budget.lists:
            gained, row["pooled"] = budget.gained(selector)
            by_retain = budget.retain.contrast(nll, budget.nll(BASELINE))
            row |= ends_of("recovered_vs_random", gained) | {"p": finite_or_none(gained.p)}
            row |= ends_of("retain_vs_random", by_retain)
            if deep is not None:
                row |= ends_of("deep_vs_random", deep.gained(selector)[0])
        yield row, gained


def ends_of(name: str, effect: Effect) -> _Row:
    """Return an effect and its interval under the names of columns."""
    ends = {"": effect.estimate, "_low": effect.low, "_high": effect.high}
    return {f"{name}{end}": finite_or_none(value) for end, value in ends.items()}


def share_columns(name: str, effect: Effect) -> _Row:
    """Return a share of the gap and its interval under the names of columns, and where it stands
    beside gold."""
    return {**ends_of(name, effect), f"{name}_beside_gold": effect.beside_gold()}


def effects_table(
    grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float, root: str | Path
) -> pa.Table:
    """Return the table ``effects`` of a grid; ``margin`` of retain NLL in nats per token. The
    comparisons of a dataset and model are one family."""
    rows = []
    for cohort in cohorts(grid, root):
        family = list(_rows(cohort, grid, by_chance, margin))
        known_p = [np.nan if effect is None else effect.p for _, effect in family]
        comparisons = int(np.count_nonzero(~np.isnan(known_p)))
        for (row, effect), corrected in zip(family, holm(known_p), strict=True):
            if effect is not None:
                row |= {"p_holm": finite_or_none(corrected), "comparisons": comparisons}
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.EFFECTS.schema)


def _rows(
    cohort: Cohort, grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float
) -> Iterator[tuple[_Row, Effect | None]]:
    for beta in sorted(grid["budgets"]):
        retrained = {name: arms.retrained(name, beta) for name in grid["selectors"]}
        steps = [
            [read_json(path)["steps"] for path in cohort.files(paths.CARD, arm=arm)]
            for arm in ("gold", "beta0", *retrained.values())
        ]
        card = read_json(cohort.files(paths.CARD, arm="gold")[0])
        head = {**cohort.at, "beta": float(beta), "steps": card["settings"]["training"]["steps"]}
        head["equal_steps"] = all(of_arm == steps[0] for of_arm in steps)
        budget = _models(cohort, retrained, by_chance, deep=False)
        deep = _models(cohort, retrained, by_chance, deep=True) if cohort.raked.any() else None
        for row, gained in rows_of_budget(budget, margin, deep):
            yield head | row, gained


def _models(
    cohort: Cohort, retrained: Mapping[str, str], by_chance: Mapping[str, bool], *, deep: bool
) -> BudgetModels:
    """Read what the models of a budget, by selector, make of the held-out texts."""
    lists: dict[str, list[Floats]] = {}
    for name, arm in retrained.items():
        nll = cohort.nll(arm, deep=deep)
        lists.setdefault(BASELINE if by_chance[name] else name, []).append(nll)
    return BudgetModels(
        {name: np.array(several) for name, several in lists.items()},
        (cohort.nll("beta0", deep=deep), cohort.nll("gold", deep=deep)),
        cohort.of(FORGET, deep=deep),
        cohort.of(RETAIN, deep=deep),
    )
