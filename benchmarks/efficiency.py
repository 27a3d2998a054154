"""How many seeds each measure needs to tell two selectors apart, from the same retrained models.

    python benchmarks/efficiency.py results --pairs oracle-mamushi mamushi-random

Reads a folder of results, or an archive. Per dataset, model, budget and pair: the mean difference
over seeds, its standard deviation over seeds of these texts, and the seeds that show such a
difference with power 0.8 in one test at 5%: by the spread observed, and from fewest to most by its
95% interval, which few seeds do not have. Lists of chance are one selector, `random`, as
`--chance` names them. The measures: SAD in perplexity and of log perplexities; forget NLL; that
less retain NLL; the recovered share of the gap, and the same with the spread pooled over all models
of a budget, where tests allow it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from archive import Run
from claims import opened

from mamushi.config.arms import Arm
from mamushi.evaluation.effects import Budget
from mamushi.evaluation.paired import seeds_needed, seeds_range
from mamushi.evaluation.sad import Floats, sad
from mamushi.evaluation.summary import BASELINE
from report import Report

Measured = tuple[float, float, float]
"""A mean difference, its standard deviation over seeds, and the degrees of freedom of that."""


def measures(budget: Budget, one: str, other: str) -> dict[str, Measured]:
    """Return by measure how far two selectors are apart at the same seeds.

    SAD of a selector with several lists is the mean of theirs.
    """
    own = np.array([budget.forget, ~budget.forget])
    tokens = own @ budget.tokens

    def nll(of: Floats) -> Floats:
        """Return the mean NLL per token of both domains (2, ...)."""
        return np.array([of[..., inside].sum(axis=-1) for inside in own]) / tokens.reshape(
            2, *[1] * (of.ndim - 1)
        )

    gold = nll(budget.gold)

    def distance(selector: str, *, log: bool) -> Floats:
        scale = np.asarray if log else np.exp
        return np.asarray(sad(*scale(nll(budget.lists[selector])), *scale(gold)).mean(axis=0))

    forget, retain = nll(budget.nll(one) - budget.nll(other))
    found = {
        "sad": distance(one, log=False) - distance(other, log=False),
        "log_sad": distance(one, log=True) - distance(other, log=True),
        "forget": forget,
        "forget_less_retain": forget - retain,
    }
    told = {name: _over_seeds(values) for name, values in found.items()}
    a, b = budget.nll(one), budget.nll(other)
    pooled, allowed = budget.apart(one, other)
    plain = budget.contrast(a, b, forget=True, share=True)
    for name, effect in (("recovered", plain), ("recovered_pooled", pooled)):
        if np.isfinite(effect.over_seeds) and (allowed or name == "recovered"):
            spread = float(np.sqrt(effect.over_seeds))
            told[name] = effect.estimate, spread, effect.seed_freedom
    return told


def _over_seeds(values: Floats) -> Measured:
    return float(values.mean()), float(values.std(ddof=1)), len(values) - 1.0


def budgets(run: Run, chance: Sequence[str]) -> Iterator[tuple[str, Budget]]:
    """Yield the budgets of a run, each with the selectors that all of its seeds have."""
    seeds = sorted({seed for seed, _ in run.nll})
    names = {name for _, name in run.nll if all((seed, name) in run.nll for seed in seeds)}
    arms = {name: Arm.parse(name) for name in sorted(names)}
    retrained = {name: arm for name, arm in arms.items() if arm.selector and not arm.unlearner}
    if not {"beta0", "gold"} <= names:
        return

    def nll(name: str) -> Floats:
        return np.array([run.nll[seed, name] for seed in seeds])

    shared = (nll("beta0"), nll("gold"), run.tokens, run.held_out.forget, run.held_out.groups)
    for beta in sorted({str(arm.beta) for arm in retrained.values()}):
        lists: dict[str, list[Floats]] = {}
        for name, arm in retrained.items():
            if arm.beta == beta:
                selector = BASELINE if arm.selector in chance else str(arm.selector)
                lists.setdefault(selector, []).append(nll(name))
        yield beta, Budget({name: np.array(each) for name, each in lists.items()}, *shared)


def said(found: Measured) -> str:
    """Return a difference and the seeds that it needs, in words."""
    difference, spread, freedom = found
    point = seeds_needed(difference, spread, 1)
    ends = seeds_range(difference, spread, round(freedom) + 1, 1)
    between = "unknown" if ends is None else f"{ends[0]} to {ends[1]}"
    return f"{difference:+.4g} sd {spread:.4g} seeds {point} ({between})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of results, or an archive")
    parser.add_argument("--pairs", nargs="+", default=["oracle-mamushi", "mamushi-random"])
    parser.add_argument("--chance", nargs="+", default=["random", "random_2", "random_3"])
    args = parser.parse_args()
    report = Report("efficiency", threads=1)
    for (dataset, model), run in opened(args.folder).items():
        report.value(f"{dataset}/{model}/seeds", len({seed for seed, _ in run.nll}))
        for beta, budget in budgets(run, args.chance):
            for one, other in (pair.split("-") for pair in args.pairs):
                if not {one, other} <= set(budget.lists):
                    continue
                for name, found in measures(budget, one, other).items():
                    report.value(f"{dataset}/{model}/{beta}/{one}-{other}:{name}", said(found))
    report.write()


if __name__ == "__main__":
    main()
