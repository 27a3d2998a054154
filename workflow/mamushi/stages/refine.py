"""Choose the finer budgets at which a pair of unlearner and selector is measured.

The configured budgets say between which two the mean curve over seeds first reaches the target; the
multiples of ``fine`` between these are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.configuration import arms
from mamushi.running.identity import digest
from mamushi.running.stage import Job, root, writes
from mamushi.stages._settings import Config, Settings

if TYPE_CHECKING:
    from mamushi.evaluation.sad import Floats


class Refine(Settings):
    """Settings of the stage ``refine``."""

    dataset: str
    model: str
    unlearner: str
    selector: str
    start: str
    seeds: list[int]
    budgets: list[float]
    fine: float | None
    target: float


def settings(config: Config, dataset: str, model: str, unlearner: str, selector: str) -> Refine:
    axes = config["unlearning"]
    return Refine(
        dataset=dataset,
        model=model,
        unlearner=unlearner,
        selector=selector,
        start=arms.start(config, model),
        **{key: axes[key] for key in ("seeds", "budgets", "fine", "target")},
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out: Path = writes("the sweep's budgets (JSON)")


def run(files: Files, settings: Refine, job: Job) -> None:
    """Write ``budgets`` (measured and added), ``added``, ``crossing`` and the mean ``recovery``.

    Raises ``UserError`` that names the first missing or damaged perplexity.
    """
    import numpy as np

    from mamushi.artifacts import paths
    from mamushi.artifacts.files import write_json
    from mamushi.evaluation.crossing import first_crossing, refine

    measured = sorted(settings.budgets)
    beta = [0.0, *measured, 1.0]
    curves = np.array([_curve(files.root, settings, seed, measured) for seed in settings.seeds])
    with_gap = curves[~np.isnan(curves).any(axis=1)]
    mean = with_gap.mean(axis=0) if len(with_gap) else None
    found = None if mean is None else first_crossing(beta, mean, settings.target)
    added = [] if mean is None else refine(beta, mean, settings.target, settings.fine)
    added = [budget for budget in added if budget not in measured]
    heights: list[float | None] = [None] * len(beta) if mean is None else mean.tolist()
    write_json(
        files.out,
        {
            "budgets": sorted([*measured, *added]),
            "added": added,
            "crossing": found,
            "recovery": dict(zip(map(paths.beta, beta), heights, strict=True)),
            "provenance": job.origin,
        },
    )


def _curve(root: Path, settings: Refine, seed: int, measured: list[float]) -> Floats:
    """One seed's recovery at budget 0, the measured budgets and 1; NaN where it has no gap."""
    from mamushi.artifacts import paths
    from mamushi.configuration import arms
    from mamushi.evaluation.crossing import recovery
    from mamushi.evaluation.curves import read_perplexity

    cell: dict[str, Any] = {"dataset": settings.dataset, "model": settings.model, "seed": seed}
    pair = (settings.unlearner, settings.selector)
    between = [arms.unlearned(*pair, budget) for budget in measured]
    found = (
        read_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=arm)).ppl_forget
        for arm in (settings.start, "gold", *between, arms.whole(settings.unlearner))
    )
    start, gold, *others = found
    return recovery([start, *others], start, gold)
