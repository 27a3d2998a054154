"""What an archived run measures of arms, at all seeds that a family of claims has complete."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from mamushi.config import arms
from mamushi.evaluation.half_gap import crossing, first_crossing, recovery
from mamushi.evaluation.intervals import LEVEL, t_quantile
from mamushi.evaluation.sad import sad
from mamushi.selection.metrics import DELONG_FACTOR, clusters_of, placements, sampling_error
from mamushi_extras.effects.contrasts import (
    NO_ERROR,
    NO_GAP,
    Effect,
    contrast,
    pooled_variance,
)
from studies.evidence.archive import Run
from studies.evidence.families import RANDOM, Claim, Family

Doubles = NDArray[np.float64]
GOLD, BETA0, RETRAINING = "gold", "beta0", "retraining"
HALF = 0.5
OPEN = "a budget that recovers half of the gap is not reached, or its interval is open"
ONE_SEED = "one seed"


class Absent(Exception):
    """The run lacks what is asked for; says what."""


@dataclass(frozen=True)
class Pool:
    """How a difference is made of lists: ``weights`` of a list's budgets, and the variance of the
    difference as a ``factor`` of one list's."""

    weights: dict[float, float]
    factor: float


@dataclass(frozen=True)
class Measured:
    """A run's arms over the budgets of a family; ``lists`` are what stands for ``random``. Shares
    of the gap are ``net`` of retain texts, or of forget texts alone."""

    run: Run
    family: Family
    net: bool = True

    @cached_property
    def seeds(self) -> list[int]:
        """The family's seeds, of which all arms of its claims are there."""
        return [s for s in self.family.seeds if all(self._trains(s, arm) for arm in self._needed())]

    def _trains(self, seed: int, arm: str) -> bool:
        return (seed, arm) in self.run.nll

    def _needed(self) -> list[str]:
        """Arms of the claims that any seed has: what no seed has is a claim that is not tried."""
        names = [BETA0, GOLD, *(f"{name}/whole" for name in self.family.baselines())]
        for name in self.family.selectors():
            for list_name in self.lists(name):
                names += [arms.retrained_arm(list_name, beta) for beta in self.family.budgets]
        return [
            a
            for a in names
            if a in (BETA0, GOLD) or any(self._trains(s, a) for s, _ in self.run.nll)
        ]

    def lists(self, selector: str) -> Sequence[str]:
        return self.family.chance if selector == RANDOM else [selector]

    def share(self, *selectors: str | None) -> float:
        """The variance of a difference of selectors, as a factor of that of one list."""
        return sum(1 / len(self.lists(name)) for name in selectors if name)

    def nll(self, selector: str, budgets: Iterable[float], measure: str = "recovered") -> Doubles:
        """NLL of the held-out texts (S, n), mean over budgets and, for ``random``, its lists."""
        if selector in (GOLD, BETA0):
            return self.of_arms([selector], measure)
        lists = self.lists(selector)
        return self.of_arms([arms.retrained_arm(s, b) for s in lists for b in budgets], measure)

    def of_arms(self, names: Sequence[str], measure: str) -> Doubles:
        """NLL of the held-out texts (S, n), mean over arms; for ``deep`` without word frequencies,
        NaN for texts that are not sampled for it."""
        nll = self.run.deep if measure == "deep" else self.run.nll
        if not nll:
            raise Absent("NLL without word frequencies was not measured")
        try:
            values = [[nll[seed, name] for name in names] for seed in self.seeds]
        except KeyError as missing:
            raise Absent(f"not trained: {missing.args[0][1]}") from None
        return np.array(values).mean(axis=1).reshape(len(self.seeds), -1)

    def chosen(self, measure: str) -> NDArray[np.bool_]:
        """Which held-out texts (n,) a measure is of."""
        forget = self.run.held_out.forget
        if measure == "retain":
            return ~forget
        return (forget | self.net) & np.isfinite(self.nll(GOLD, (), measure).sum(axis=0))

    def contrast(self, a: Doubles, b: Doubles, measure: str, pool: Pool | None = None) -> Effect:
        """How much the mean NLL is higher under ``a`` than ``b`` (S, n): of forget texts, net of
        retain texts, a share of the gap, of retain texts in nats."""
        chosen = self.chosen(measure)
        tokens, groups = self.run.tokens[chosen], self.run.held_out.groups[chosen]
        a, b = a[:, chosen], b[:, chosen]
        gap = forget = None
        by_seed = self._mean(a - b, chosen)
        if measure != "retain":
            forget = self.run.held_out.forget[chosen] if self.net else None
            beta0, gold = (self.nll(name, (), measure)[:, chosen] for name in (BETA0, GOLD))
            gap = beta0, gold
        pooled = None if pool is None else self.pooled(measure, by_seed, pool)
        return contrast(a, b, tokens, groups, forget=forget, gap=gap, pooled=pooled)

    def _mean(self, nll: Doubles, chosen: NDArray[np.bool_]) -> Doubles:
        """The mean NLL per token (S,) of the ``chosen`` texts, from theirs (S, m); of both domains,
        of forget texts less that of retain texts."""
        tokens, forget = self.run.tokens[chosen], self.run.held_out.forget[chosen]
        if not forget.any() or forget.all():
            return np.asarray(nll.sum(axis=1) / tokens.sum())
        means = [nll[:, of].sum(axis=1) / tokens[of].sum() for of in (forget, ~forget)]
        return np.asarray(means[0] - means[1])

    def pooled(self, measure: str, values: Doubles, pool: Pool) -> tuple[float, float] | None:
        """The variance over seeds of a difference (S,), pooled over all lists of all selectors."""
        lists = [list_name for name in self.family.selectors() for list_name in self.lists(name)]
        levels = []
        for list_name in lists:
            names = {
                arms.retrained_arm(list_name, beta): weight for beta, weight in pool.weights.items()
            }
            if all(self._trains(seed, name) for seed in self.seeds for name in names):
                levels.append(sum(w * self._level(measure, name) for name, w in names.items()))
        return pooled_variance(np.array(levels), values, pool.factor)

    def _level(self, measure: str, name: str) -> Doubles:
        if measure == "sad":
            return sad(*self.perplexity(name).T, *self.perplexity(GOLD).T)
        if measure == "deep":
            chosen = self.chosen(measure)
            return self._mean(self.of_arms([name], measure)[:, chosen], chosen)
        forget, retain = np.log(self.perplexity(name)).T
        if measure == "retain":
            return np.asarray(retain)
        return np.asarray(forget - retain if self.net else forget)

    def perplexity(self, name: str) -> Doubles:
        """Perplexity of forget and of retain texts (S, 2)."""
        try:
            means = [self.run.cards[seed, name]["nll"] for seed in self.seeds]
        except KeyError as missing:
            raise Absent(f"not trained: {missing.args[0][1]}") from None
        return np.exp(np.array(means).reshape(-1, 2))

    def sad(self, selector: str, budgets: Iterable[float]) -> Doubles:
        """SAD (S,), mean over budgets and lists."""
        gold = self.perplexity(GOLD).T
        names = [arms.retrained_arm(s, beta) for s in self.lists(selector) for beta in budgets]
        return np.mean([sad(*self.perplexity(name).T, *gold) for name in names], axis=0)

    def placements(self, selector: str) -> list[tuple[Doubles, Doubles]]:
        """What ``selection.metrics.placements`` says of each seed's scores."""
        scores = [self.run.scores.get((seed, selector), np.array(np.nan)) for seed in self.seeds]
        if not all(np.isfinite(values).all() for values in scores):
            raise Absent(f"not trained: scores of {selector}")
        return [placements(values, self.run.ranked.forget) for values in scores]

    def curves(self, selector: str, by: str) -> tuple[Doubles, Doubles]:
        """Budgets of all seeds, and the shares of the gap in forget perplexity that are recovered
        there (seeds, budgets); by retraining or by an unlearner from beta 0."""
        start, gold = self.perplexity(BETA0), self.perplexity(GOLD)
        whole = gold if by == RETRAINING else self.perplexity(f"{by}/whole")
        arm_of = arms.retrained_arm if by == RETRAINING else partial(arms.unlearned_arm, by)
        lists = [s for s in self.lists(selector) if self._curve(s, arm_of)]
        if not lists:
            raise Absent(f"not trained: {by} of {selector}")
        budgets = sorted(set.intersection(*(self._curve(s, arm_of) for s in lists)))
        between = [
            np.mean([self.perplexity(arm_of(s, beta)) for s in lists], axis=0) for beta in budgets
        ]
        ppl = np.array([start, *between, whole])[..., 0]
        return np.array([0.0, *budgets, 1.0]), recovery(ppl, start[:, 0], gold[:, 0]).T

    def _curve(self, selector: str, arm_of: Callable[[str, float], str]) -> set[float]:
        pattern = arm_of(selector, 0).removesuffix("0.00")
        by_seed = [
            {
                float(arm.removeprefix(pattern))
                for of, arm in self.run.cards
                if of == seed and arm.startswith(pattern)
            }
            for seed in self.seeds
        ]
        return set.intersection(*by_seed) if by_seed else set()


def over_seeds(values: Doubles, pooled: tuple[float, float] | None = None) -> Effect:
    """The mean of values (S,), with its t interval over seeds; with a ``pooled`` variance and its
    degrees of freedom in the place of its own."""
    mean = float(values.mean())
    if len(values) < 2:
        return Effect(mean, reason=ONE_SEED)
    variance, freedom = pooled or (float(values.var(ddof=1)), len(values) - 1.0)
    if variance == 0:
        return Effect(mean, reason=NO_ERROR)
    error = float(np.sqrt(variance / len(values)))
    half, p = t_quantile(freedom) * error, 2 * float(stdtr(freedom, -abs(mean) / error))
    return Effect(mean, mean - half, mean + half, p)


def difference(claim: Claim, of: Measured, rival: str | float, shift: float = 0.0) -> Effect:
    """Return a claim's first side less that of a rival, plus ``shift``, in its measure's unit.

    Errors are over seeds and texts; of SAD and of budgets over seeds alone. Those over seeds are
    pooled over selectors where a test allows it. Raises ``Absent``.
    """
    if claim.measure in ("half_gap", "saving"):
        return _of_budgets(claim, of, rival, shift)
    if claim.measure == "auc":
        return _of_auc(of, claim.one, str(rival), shift)
    budgets = of.family.budgets if claim.budget is None else [claim.budget]
    first, second = (claim.one, budgets), (str(rival), budgets)
    pool = Pool(dict.fromkeys(budgets, 1 / len(budgets)), of.share(claim.one, str(rival)))
    if claim.than_budgets:
        second = claim.one, [float(rival)]
        pool = Pool({budgets[0]: 1.0, float(rival): -1.0}, of.share(claim.one, claim.less))

    def value(selector: str, at: list[float]) -> Doubles:
        by_sad = claim.measure == "sad"
        return of.sad(selector, at) if by_sad else of.nll(selector, at, claim.measure)

    a = value(*first)
    b = of.of_arms([f"{rival}/whole"], claim.measure) if claim.than_by else value(*second)
    if claim.less:
        a, b = a - value(claim.less, first[1]), b - value(claim.less, second[1])
    if claim.measure == "sad":
        return over_seeds(a - b + shift, of.pooled("sad", a - b, pool))
    unit = of.run.tokens
    if claim.measure != "retain":
        unit = of.nll(GOLD, (), claim.measure) - of.nll(BETA0, (), claim.measure)
    not_a_list = claim.than_by or GOLD in (claim.one, rival)
    return of.contrast(a + shift * unit, b, claim.measure, None if not_a_list else pool)


def _of_auc(of: Measured, first: str, second: str, shift: float) -> Effect:
    """The difference of two AUCs: its variance over seeds and, of the mean placements, texts."""
    texts, sides = of.run.ranked, zip(of.placements(first), of.placements(second), strict=True)
    apart = [(a[0] - b[0], a[1] - b[1]) for a, b in sides]
    above, below = (np.mean(values, axis=0) for values in zip(*apart, strict=True))
    clusters = clusters_of(texts.groups, texts.forget)
    of_texts = DELONG_FACTOR * sampling_error(above, below, clusters).variance
    values = np.array([values.mean() for values, _ in apart]) + shift
    seeds = over_seeds(values)
    of_seeds = float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
    error = float(np.sqrt(of_texts + of_seeds))
    fewest = min(len(np.unique(texts.groups[texts.forget == side])) for side in (True, False))
    freedom = fewest - 1.0
    if of_seeds > 0:
        shares = of_texts**2 / freedom + of_seeds**2 / (len(values) - 1)
        freedom = error**4 / shares
    half = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(seeds.estimate) / error))
    ends = seeds.estimate - half, seeds.estimate + half
    return replace(seeds, low=ends[0], high=ends[1], p=p, reason=None)


def _of_budgets(claim: Claim, of: Measured, rival: str | float, shift: float) -> Effect:
    """The difference of two half-gap budgets, or of what two ways save, by a jackknife of seeds:
    the slopes of the curves are measured too."""
    sides = [(claim.one, claim.by), (str(rival), claim.by)]
    if claim.than_by:
        sides[1] = claim.one, str(rival)
    if claim.measure == "saving":
        sides = [(name, by) for _, by in sides for name in (claim.one, RANDOM)]
    curves = [of.curves(*side) for side in sides]
    if not all(np.isfinite(recovered).all() for _, recovered in curves):
        return Effect(np.nan, reason=NO_GAP)
    crossings = [crossing(*curve, HALF) for curve in curves]
    if any(value is None for curve in crossings for value in (curve.budget, curve.low, curve.high)):
        return Effect(np.nan, reason=OPEN)
    seeds = np.arange(len(of.seeds))
    whole = _apart(curves, seeds) + shift
    left = np.array([_apart(curves, seeds[seeds != out]) + shift for out in seeds])
    if not np.isfinite(left).all():
        return Effect(whole, reason=OPEN)
    return over_seeds(whole - (len(seeds) - 1) * (left - left.mean()))


def _apart(curves: Sequence[tuple[Doubles, Doubles]], seeds: NDArray[np.int64]) -> float:
    """Two budgets' difference; of four curves, that of two savings."""
    budgets = [first_crossing(beta, of[seeds].mean(axis=0), HALF) for beta, of in curves]
    if None in budgets:
        return np.nan
    if len(budgets) == 2:
        return float(budgets[0] - budgets[1])
    return float(budgets[2] / budgets[3] - budgets[0] / budgets[1])
