"""The table ``effects``: what a removal changes in the NLL of held-out texts, with its errors.

Signed changes in place of SAD: of forget texts the share of the gap from beta 0 to gold that is
recovered, of retain texts the change against gold, in nats per token. Errors are over seeds and
texts (``crossed``). Lists of chance are models of one selector, ``random``: the mean over a seed's
lists is that seed's value, so that lists spread as they do between seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.evaluation.cohort import NOT_RAKED, Cohort, cohorts
from mamushi.evaluation.crossed import Effect, contrast, pooled_variance
from mamushi.evaluation.paired import finite_or_none, holm
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.summary import BASELINE
from mamushi.io import paths, schemas
from mamushi.io.files import read_json

YES, NO, UNKNOWN = "yes", "no", "cannot be told"
_Row = dict[str, Any]


@dataclass(frozen=True)
class BudgetModels:
    """What the models of one budget make of n held-out texts, sums of the NLL in nats.

    ``lists`` has by selector those of its lists (L, S, n), of which only ``random`` has several;
    ``beta0`` and ``gold`` (S, n); ``tokens``, ``forget`` and ``groups`` (n,).
    """

    lists: Mapping[str, Floats]
    beta0: Floats
    gold: Floats
    tokens: Floats
    forget: NDArray[np.bool_]
    groups: NDArray[np.int64] | None = None

    def nll(self, selector: str) -> Floats:
        """Return the mean over the lists of a selector (S, n)."""
        return np.asarray(self.lists[selector].mean(axis=0))

    def contrast(self, a: Floats, b: Floats, *, forget: bool, **options: Any) -> Effect:
        """Return how much models a predict one domain worse than b, in nats per token; ``options``
        as of ``crossed.contrast``."""
        inside = self.forget == forget
        groups = None if self.groups is None else self.groups[inside]
        return contrast(a[:, inside], b[:, inside], self.tokens[inside], groups, **options)

    def share(self, a: Floats, b: Floats, pooled: tuple[float, float] | None = None) -> Effect:
        """Return how much models a predict the forget domain worse than b, as a share of the
        gap."""
        ends = {"beta0": self.beta0[:, self.forget], "gold": self.gold[:, self.forget]}
        return self.contrast(a, b, forget=True, pooled=pooled, **ends)

    def apart(self, selector: str, reference: str) -> tuple[Effect, bool]:
        """Compare how much of the gap two selectors recover.

        Return the share of ``selector`` less that of ``reference``, and whether its variance over
        seeds is pooled over all lists of the budget.
        """
        inside = self.forget
        a, b = self.nll(selector), self.nll(reference)
        every, tokens = np.concatenate(list(self.lists.values())), self.tokens[inside].sum()
        by_arm, by_seed = (nll[..., inside].sum(axis=-1) / tokens for nll in (every, a - b))
        factor = 1 / len(self.lists[selector]) + 1 / len(self.lists[reference])
        pooled = pooled_variance(by_arm, by_seed, factor)
        return self.share(a, b, pooled), pooled is not None


def non_inferior(change: Effect, margin: float) -> str:
    """Say whether a change of NLL, nats per token, is below a margin above 0."""
    if change.high < margin:
        return YES
    return NO if change.low > margin else UNKNOWN


def rows_of_budget(
    budget: BudgetModels, margin: float, deep: BudgetModels | None = None
) -> Iterator[tuple[_Row, Effect | None]]:
    """Yield the row of each selector of a budget, and the share of the gap that it recovers beyond
    ``random``; None for ``random`` itself, or where it was not run. ``deep`` are the same models on
    the texts whose NLL is known without word frequencies.
    """
    seeds = len(budget.gold)
    for selector, lists in budget.lists.items():
        nll = budget.nll(selector)
        recovered = budget.share(nll, budget.beta0)
        retain = budget.contrast(nll, budget.gold, forget=False)
        row: _Row = {"selector": selector, "lists": len(lists), "seeds": seeds}
        row |= share_columns("recovered", recovered)
        row |= ends_of("retain_change", retain)
        row |= {"retain_margin": margin, "non_inferior": non_inferior(retain, margin)}
        row["withheld"] = recovered.reason or retain.reason
        row |= _deep_columns(deep, selector)
        gained = None
        if selector != BASELINE and BASELINE in budget.lists:
            gained, row["pooled"] = budget.apart(selector, BASELINE)
            by_retain = budget.contrast(nll, budget.nll(BASELINE), forget=False)
            row |= ends_of("recovered_vs_random", gained) | {"p": finite_or_none(gained.p)}
            row |= ends_of("retain_vs_random", by_retain)
        yield row, gained


def _deep_columns(deep: BudgetModels | None, selector: str) -> _Row:
    """Return what a selector recovers of the gap that word frequencies do not explain."""
    if deep is None:
        return {"deep_withheld": NOT_RAKED}
    recovered = deep.share(deep.nll(selector), deep.beta0)
    gap = deep.contrast(deep.gold, deep.beta0, forget=True)
    row = share_columns("deep", recovered) | ends_of("deep_gap", gap)
    row["deep_withheld"] = recovered.reason
    if selector != BASELINE and BASELINE in deep.lists:
        row |= ends_of("deep_vs_random", deep.apart(selector, BASELINE)[0])
    return row


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
    """Return the table ``effects`` of a grid; ``margin`` of retain NLL in nats per token."""
    rows = [
        row for cohort in cohorts(grid, root) for row in _family(cohort, grid, by_chance, margin)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.EFFECTS.schema)


def _family(
    cohort: Cohort, grid: Mapping[str, Any], by_chance: Mapping[str, bool], margin: float
) -> list[_Row]:
    """Return the rows of a dataset and model, whose comparisons are one family."""
    of = {name: BASELINE if by_chance[name] else name for name in grid["selectors"]}
    family: list[tuple[_Row, Effect | None]] = []
    for beta in sorted(grid["budgets"]):
        budget = _models(cohort, of, beta, cohort.counted)
        deep = _models(cohort, of, beta, cohort.raked, deep=True) if cohort.raked.any() else None
        steps = _steps(cohort, [arms.retrained(name, beta) for name in of])
        head = {**cohort.at, "beta": float(beta), **steps}
        family += [(head | row, gained) for row, gained in rows_of_budget(budget, margin, deep)]
    known_p = [np.nan if effect is None else effect.p for _, effect in family]
    comparisons = int(np.count_nonzero(~np.isnan(known_p)))
    for (row, effect), corrected in zip(family, holm(known_p), strict=True):
        if effect is not None:
            row |= {"p_holm": finite_or_none(corrected), "comparisons": comparisons}
    return [row for row, _ in family]


def _models(
    cohort: Cohort,
    of: Mapping[str, str],
    beta: float,
    inside: NDArray[np.bool_],
    *,
    deep: bool = False,
) -> BudgetModels:
    """Read what the models of a budget make of the texts ``inside`` (all texts,). ``of`` has by
    selector under which name its lists are pooled."""
    texts = cohort.texts
    lists: dict[str, list[Floats]] = {}
    for name, pooled in of.items():
        nll = cohort.nll(arms.retrained(name, beta), deep=deep)[:, inside]
        lists.setdefault(pooled, []).append(nll)
    beta0, gold = (cohort.nll(end, deep=deep)[:, inside] for end in ("beta0", "gold"))
    groups = None if texts.groups is None else texts.groups[inside]
    return BudgetModels(
        {name: np.array(several) for name, several in lists.items()},
        *(beta0, gold, cohort.tokens[inside], texts.forget[inside], groups),
    )


def _steps(cohort: Cohort, retrained: Sequence[str]) -> _Row:
    """Return how steps were counted, and whether all models of a seed took as many as gold."""

    gold, *others = (
        [read_json(path) for path in cohort.files(paths.CARD, arm=arm)]
        for arm in ("gold", "beta0", *retrained)
    )
    of_gold, *of_others = ([card["steps"] for card in cards] for cards in (gold, *others))
    equal = all(steps == of_gold for steps in of_others)
    return {"steps": gold[0]["settings"]["training"]["steps"], "equal_steps": equal}
