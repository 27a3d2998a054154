"""Where half of the gap is recovered that word frequencies do not explain.

As in ``half_gap``, of the NLL that is raked (``lm.raking``): 0 is the model that unlearning starts
from, 1 the gold standard, straight between measured budgets. That gap is a small part of the whole,
so that which texts are held out matters as seeds do: errors are over both (``crossed``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.cohort import NOT_RAKED, RETRAINING_SOURCE, cohorts
from mamushi.evaluation.crossed import NO_GAP, contrast
from mamushi.evaluation.crossing import first_crossing, interpolate
from mamushi.evaluation.half_gap import curve_arms, sweep_budgets
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
        low = high = None
        if len(self.start) > 1:
            steps = np.union1d(beta, np.linspace(beta[0], beta[-1], DEEP_STEPS + 1))
            aim, flat = self.start + target * (self.gold - self.start), nll.reshape(len(beta), -1).T
            at = [interpolate(beta, flat, step).reshape(aim.shape) for step in steps]
            effects = [contrast(nll_at, aim, self.tokens, self.groups) for nll_at in at]
            low = first_crossing(steps, [effect.high for effect in effects], 0.0)
            high = first_crossing(steps, [effect.low for effect in effects], 0.0)
        row = {"deep_budget": budget, "deep_censored": budget is None}
        return {**row, "deep_budget_low": low, "deep_budget_high": high}


def deep_gaps(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    target: float,
    root: str | Path,
) -> tuple[dict[tuple[Any, ...], float], dict[tuple[str, ...], dict[str, Any]]]:
    """Return the shares of the deep gap at each ``POINT`` of the table ``unlearning``, and by
    ``PAIR`` the columns of the table ``half_gap``: where they reach ``target``.

    Arguments as of ``half_gap.unlearning_table``.
    """
    points: dict[tuple[Any, ...], float] = {}
    budgets: dict[tuple[str, ...], dict[str, Any]] = {}
    swept = sweep_budgets(sweeps)
    for cohort in cohorts(grid, root):
        start, texts = starts[cohort.model], cohort.subset(np.flatnonzero(cohort.raked))
        low, high = (cohort.nll(arm, deep=True)[:, texts.rows] for arm in (start, "gold"))
        scale = DeepScale(low, high, texts.tokens, texts.groups)
        reason = scale.why_not()
        for ways in product((RETRAINING_SOURCE, *grid["unlearners"]), grid["selectors"]):
            pair = (cohort.dataset, cohort.model, *ways)
            if reason:
                budgets[pair] = {"deep_withheld": reason}
                continue
            models = curve_arms(*ways, swept.get(pair) or grid["budgets"], start)
            arms = models.values()
            nll = np.array([cohort.nll(arm, deep=True)[:, texts.rows] for arm in arms])
            budgets[pair] = scale.crossing(np.array(list(models)), nll, target)
            for seed, shares in zip(cohort.seeds, scale.shares(nll), strict=True):
                at = (cohort.dataset, cohort.model, seed, *ways)
                points |= {(*at, b): float(s) for b, s in zip(models, shares, strict=True)}
    return points, budgets
