"""Collect the budget-perplexity curves of unlearning and retraining, and their half-gap budgets."""

from __future__ import annotations

from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config, starts_of, unlearning_axes


class HalfGap(Collected):
    """Settings of the stage ``half_gap``; ``starts`` are the endpoints by model."""

    starts: dict[str, str]
    target: float
    retain_cap: float


def settings(config: Config) -> HalfGap:
    axes = config["unlearning"]
    return HalfGap(
        grid=unlearning_axes(config),
        starts=starts_of(config, axes),
        **{key: axes[key] for key in ("target", "retain_cap")},
        code=digest(__name__),
    )


def run(files: Files, settings: HalfGap, job: Job) -> None:
    """Write ``unlearning`` and ``half_gap``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.half_gap import half_gap_table, unlearning_table

    points = unlearning_table(settings.grid, settings.starts, files.root)
    budgets = half_gap_table(points, target=settings.target, retain_cap=settings.retain_cap)
    made = [(schemas.UNLEARNING, points), (schemas.HALF_GAP, budgets)]
    publish(files.out_folder, made, job.origin)
