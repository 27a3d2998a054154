"""Where half of the gap is recovered that word frequencies do not explain.

As in ``half_gap``, of the NLL that is raked (``lm.raking``): 0 is the model that unlearning starts
from, 1 the gold standard, straight between measured budgets. That gap is a small part of the whole,
so that which texts are held out matters as seeds do: errors are over both (``crossed``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.cohort import NOT_RAKED, RETRAINING_SOURCE, Cohort, cohorts
from mamushi.evaluation.crossed import NO_GAP, contrast
from mamushi.evaluation.crossing import first_crossing, first_crossings, interpolate
from mamushi.evaluation.half_gap import curve_arms, sweep_budgets
from mamushi.evaluation.paired import finite_or_none
from mamushi.evaluation.sad import Floats

DEEP_STEPS = 100  # Budgets at which the band around a curve is worked out.


@dataclass(frozen=True)
class DeepScale:
    """The ends of the gap: what the models of ``start`` and ``gold`` make of n raked texts, sums of
    the NLL in nats (S, n). ``tokens`` and ``groups`` (n,), of texts that are not independent."""

    start: Floats
    gold: Floats
    tokens: Floats
    groups: NDArray[np.int64] | None = None

    def why_not(self) -> str | None:
        """Say why nothing is a share of the gap; None where it is clearly above 0."""
        if not len(self.tokens):
            return NOT_RAKED
        gap = contrast(self.gold, self.start, self.tokens, self.groups)
        return None if gap.low > 0 else gap.reason or NO_GAP

    def shares(self, nll: Floats) -> Floats:
        """Return the change from the start of models (budgets, S, n) as a share of the mean gap,
        (S, budgets): the mean over seeds is what is recovered of it."""
        gap = (self.gold - self.start).sum(axis=-1).mean()
        return np.asarray((nll - self.start).sum(axis=-1).T / gap)

    def crossing(self, beta: Floats, nll: Floats, target: float) -> dict[str, Any]:
        """Return the columns ``deep_*`` of the table ``half_gap`` for models (budgets, S, n) at
        ascending budgets ``beta``: where the share is ``target``, and between which budgets no test
        tells it from that; one seed does not know how far another is, and has no such ends."""
        budget = first_crossing(beta, self.shares(nll).mean(axis=0), target)
        row = {"deep_budget": budget, "deep_censored": budget is None}
        if len(self.start) == 1:
            return {**row, "deep_budget_low": None, "deep_budget_high": None}
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], DEEP_STEPS + 1))
        aim, flat = self.start + target * (self.gold - self.start), nll.reshape(len(beta), -1).T
        bands = []
        for step in steps:
            at = interpolate(beta, flat, step).reshape(aim.shape)
            effect = contrast(at, aim, self.tokens, self.groups)
            bands.append((effect.high, effect.low))
        low, high = map(finite_or_none, first_crossings(steps, np.array(bands).T, 0.0))
        return {**row, "deep_budget_low": low, "deep_budget_high": high}


@dataclass(frozen=True)
class DeepGaps:
    """Of each point of the table ``unlearning`` its share of the deep gap, by dataset, model, seed,
    unlearner, selector and beta; of each pair its columns of the table ``half_gap``."""

    shares: dict[tuple[Any, ...], float] = field(default_factory=dict)
    budgets: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)


def deep_gaps(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    target: float,
    root: str | Path,
) -> DeepGaps:
    """Return the shares of the deep gap of all pairs of a grid, and where they reach ``target``.

    Arguments as of ``half_gap.unlearning_table``.
    """
    gaps, swept = DeepGaps(), sweep_budgets(sweeps)
    for cohort in cohorts(grid, root):
        start, raked = starts[cohort.model], cohort.raked
        scale = _scale(cohort, raked, start)
        reason = scale.why_not()
        for ways in product((RETRAINING_SOURCE, *grid["unlearners"]), grid["selectors"]):
            pair = (cohort.dataset, cohort.model, *ways)
            if reason:
                gaps.budgets[pair] = {"deep_withheld": reason}
                continue
            models = curve_arms(*ways, swept.get(pair, sorted(grid["budgets"])), start)
            beta = np.array(list(models))
            nll = np.array([cohort.nll(arm, deep=True)[:, raked] for arm in models.values()])
            gaps.budgets[pair] = scale.crossing(beta, nll, target)
            for seed, shares in zip(cohort.seeds, scale.shares(nll), strict=True):
                at = (cohort.dataset, cohort.model, seed, *ways)
                gaps.shares.update(
                    {(*at, b): float(s) for b, s in zip(models, shares, strict=True)}
                )
    return gaps


def _scale(cohort: Cohort, raked: NDArray[np.bool_], start: str) -> DeepScale:
    low, high = (cohort.nll(arm, deep=True)[:, raked] for arm in (start, "gold"))
    groups = cohort.texts.groups
    return DeepScale(low, high, cohort.tokens[raked], None if groups is None else groups[raked])
