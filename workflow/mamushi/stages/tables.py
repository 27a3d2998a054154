"""Result tables of what all jobs have measured, and the budgets at which unlearning is refined.

A stage finds the files of its cells by path, those that the function above it gives to its rule;
nothing is written unless all are there.
"""

from itertools import chain
from pathlib import Path
from typing import Any

from mamushi.config import arms, grid
from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config, Settings, refuse, setting
from mamushi.config.selectors import of_texts
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi.running.stage import Job, Output, stages
from mamushi.stages._io import parquet, schemas

OF_CELLS = {
    **{"frontier": paths.FRONTIER, "calibration": paths.CALIBRATION},
    **{"diagnostics": paths.DIAGNOSTICS, "geometry": paths.GEOMETRY},
}
"""Tables of evidence that join those of the cells."""


def axes(config: Config, study: str | None = None) -> dict[str, Any]:
    """Return what a study compares, or the grid."""
    return dict(config["studies"][study] if study else config["grid"])


def sad_files(config: Config, study: str | None = None) -> list[str]:
    """Return the perplexities and rankings of the grid, or of a study."""
    compared = axes(config, study)
    refuse(grid.hindrances(config, compared))
    files = grid.expand(compared, paths.PERPLEXITY, grid.MEASURED)
    for selector in compared["selectors"]:
        files += grid.expand(compared, grid.ranking_pattern(config, selector))
    return files


class Compared(Settings):
    """Axes of the grid, or of a study; ``ranked`` are its selectors that rank texts."""

    grid: dict[str, Any] = setting(axes)
    ranked: list[str] = setting(
        lambda config, study=None: of_texts(config, axes(config, study))["selectors"]
    )


def tables(*, root: Path = paths.RESULTS, out_folder: Output, settings: Compared, job: Job) -> None:
    """Collect a grid's measurements: SAD, which curves differ, quality of the scores."""
    from mamushi.evaluation import sad

    table = sad.sad_table(settings.grid, root, {*settings.grid["selectors"]} - {*settings.ranked})
    ranked_grid = {**settings.grid, "selectors": settings.ranked}
    results = [
        (schemas.SAD, table),
        (schemas.SAD_SUMMARY, sad.sad_summary(table)),
        (schemas.SAD_DIFFERENCES, sad.sad_differences(table)),
        (schemas.SELECTION, sad.selection_table(ranked_grid, root)),
    ]
    parquet.publish(out_folder, results, job.origin)


def sweep_files(config: Config, sweep: Config) -> list[str]:
    """Return the perplexities of a sweep at its ``budgets``, else the configured ones, and at its
    ends, that all selectors share: the start, gold, and the whole forget set unlearned."""
    names = {f"{name}s": [sweep[name]] for name in grid.OF_SWEEP}
    budgets = sweep.get("budgets") or config["unlearning"]["budgets"]
    swept = {**config["unlearning"], **names, "budgets": budgets}
    start, full = arms.starting_endpoint(config, sweep["model"]), arms.UNLEARNED_WHOLE
    return grid.expand(swept, paths.PERPLEXITY, [start, "gold", full, arms.UNLEARNED])


class Refine(Settings):
    """A pair of unlearner and selector, where it starts, and how its budgets are refined."""

    dataset: str
    model: str
    unlearner: str
    selector: str
    start: str = setting(arms.starting_endpoint)
    seeds: list[int] = setting("unlearning.seeds")
    budgets: list[float] = setting("unlearning.budgets")
    fine: float | None = setting("unlearning.fine")
    target: float = setting("unlearning.target")


def refine(*, root: Path = paths.RESULTS, out: Output, settings: Refine, job: Job) -> None:
    """Choose the finer budgets at which a pair of unlearner and selector is measured next: the
    multiples of ``fine`` between the two configured ones where the mean curve over seeds first
    reaches the target. Writes ``budgets`` (measured and added) and ``added``."""
    import numpy as np

    from mamushi.evaluation.half_gap import curve_arms, finer_budgets, recovery
    from mamushi.evaluation.sad import read_arm

    names = curve_arms(settings.unlearner, settings.selector, settings.budgets, settings.start)
    curves, added = [], list[float]()
    for seed in settings.seeds:
        cell = {"dataset": settings.dataset, "model": settings.model, "seed": seed}
        ppl = [read_arm(root, cell, arm)["ppl_forget"] for arm in (*names.values(), "gold")]
        curve = recovery(ppl[:-1], ppl[0], ppl[-1])
        # There is none where nothing is to be recovered.
        curves += [] if np.isnan(curve).any() else [curve]
    if curves:
        mean = np.mean(curves, axis=0)
        added = finer_budgets([*names], mean, settings.target, settings.fine)
    budgets = sorted([*settings.budgets, *added])
    write_json(out, {"budgets": budgets, "added": added, "provenance": job.origin})


def gap_files(config: Config) -> list[str]:
    """Return the curves of unlearning, at the finer budgets as well that an earlier run chose, and
    of retraining, of which budgets recover half of the gap."""
    unlearning = config["unlearning"]
    refuse(grid.hindrances(config, unlearning))
    swept = chain(*(sweep_files(config, sweep) for sweep in grid.sweeps(config)))
    retrained = grid.expand(unlearning, paths.PERPLEXITY, grid.MEASURED)
    curves = [*dict.fromkeys(swept), *retrained]
    nll = [path.replace("perplexity.parquet", "nll.parquet") for path in curves]
    return [*curves, *nll, *grid.expand(unlearning, paths.EXAMPLES)]


class HalfGap(Settings):
    """Axes and ``starts``, the endpoints by model; the pairs of unlearner and selector with the
    budgets of their ``sweeps``; ``target`` and cap of the half-gap budget."""

    sweeps: list[dict[str, Any]] = setting(grid.sweeps)
    grid: dict[str, Any] = setting(lambda config: grid.axes(config, "unlearning"))
    starts: dict[str, str] = setting(lambda config: grid.starts(config, "unlearning"))
    target: float = setting("unlearning.target")
    retain_cap: float = setting("unlearning.retain_cap")


def half_gap(
    *, root: Path = paths.RESULTS, out_folder: Output, settings: HalfGap, job: Job
) -> None:
    """Collect the budget-perplexity curves of unlearning and retraining, and half-gap budgets."""
    from mamushi.evaluation.half_gap import half_gap_table, unlearning_table

    axes = settings.grid, settings.starts, settings.sweeps
    points, deep = unlearning_table(*axes, settings.target, root)
    budgets = half_gap_table(points, deep, settings.target, settings.retain_cap)
    results = [(schemas.UNLEARNING, points), (schemas.HALF_GAP, budgets)]
    parquet.publish(out_folder, results, job.origin)


def probe_files(config: Config) -> list[str]:
    """Return what the models of the probed cells said."""
    refuse(grid.hindrances(config, config["probe"]))
    return grid.expand(grid.axes(config, "probe"), paths.JUDGED)


class Probes(Settings):
    """Axes of the models that are probed."""

    grid: dict[str, Any] = setting(lambda config: grid.axes(config, "probe"))


def probes(*, root: Path = paths.RESULTS, out_folder: Output, settings: Probes, job: Job) -> None:
    """Collect what all models said."""
    files = [paths.under(root, paths.JUDGED, **cell) for cell in grid.cells(settings.grid)]
    tables = [parquet.read_table(path, schemas.GENERATIONS) for path in files]
    rows = [row for table in tables for row in table.to_pylist()]
    parquet.publish(out_folder, [(schemas.GENERATIONS, rows)], job.origin)


def predicted_cells(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose retraining a room predicts: those with a tokenizer."""
    cells = grid.cells(config["grid"]) if "predict" in stages() else []
    return [cell for cell in cells if not grid.no_language_model(config, cell["model"])]


def evidence_files(config: Config) -> list[str]:
    """Return what scores and embeddings tell of all cells."""
    refuse(grid.no_gold(config, config["grid"]))
    files = (grid.expand(config["grid"], pattern) for pattern in OF_CELLS.values())
    predicted = (paths.PREDICTED.format(**cell) for cell in predicted_cells(config))
    return [*chain(*files), *predicted]


class EvidenceSettings(Settings):
    """``predicted`` are the cells whose retraining is predicted, ``selector`` is the one whose
    scores estimate the log-density ratio; ``chains`` have by selector itself and what it is derived
    from."""

    cells: list[dict[str, Any]] = setting(lambda config: grid.cells(config["grid"]))
    predicted: list[dict[str, Any]] = setting(predicted_cells)
    selector: str = setting("removal.ratio")
    targets: dict[str, float] = setting("evidence.targets")
    chains: dict[str, list[str]] = setting(
        lambda config: {
            name: of_selectors.derivation_chain(config, name)
            for name in of_selectors.ranked(config)
        }
    )


def evidence(
    *, root: Path = paths.RESULTS, out_folder: Output, settings: EvidenceSettings, job: Job
) -> None:
    """Join what the runs tell before any retraining, and add the advice that follows, and the first
    and the last texts of rankings."""
    from mamushi.evidence.advice import TARGETS, advice, read_frontier
    from mamushi.evidence.ranking import end_rows
    from mamushi.evidence.tables import cost_rows, joined_table, paper_rows, runtime_summary

    cells, selector = settings.cells, settings.selector
    kinds = {getattr(schemas, name.upper()): pattern for name, pattern in OF_CELLS.items()}
    joined = {kind: joined_table(kind, pattern, cells, root) for kind, pattern in kinds.items()}
    foreseen = (paths.under(root, paths.PREDICTED, **cell) for cell in settings.predicted)
    predicted = [row for path in foreseen for row in parquet.read_table(path, None).to_pylist()]
    curves = [read_frontier(paths.under(root, paths.FRONTIER, **cell)) for cell in cells]
    targets = [(name, settings.targets[name]) for name in TARGETS if name in settings.targets]
    described, geometry = (
        joined[kind].to_pylist() for kind in (schemas.DIAGNOSTICS, schemas.GEOMETRY)
    )
    costs = cost_rows(described, settings.chains, root)
    runs = [cell | {"selector": selector} for cell in cells if cell["seed"] == cells[0]["seed"]]
    ends = [row for run in runs for row in end_rows(root, run)]
    results = {
        **joined,
        schemas.QUALITATIVE_RANKING: ends,
        schemas.RUNTIME: costs,
        schemas.ADVICE: advice([*chain(*curves)], targets, predicted),
        schemas.PAPER: paper_rows(described, geometry, selector),
        schemas.RUNTIME_SUMMARY: runtime_summary(costs),
    }
    parquet.publish(out_folder, results.items(), job.origin)
