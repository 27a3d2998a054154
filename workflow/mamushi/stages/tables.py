"""Result tables of what all jobs have measured, and the budgets at which unlearning is refined.

Each stage finds the files of its cells by path, and raises ``UserError`` that names the first one
that is missing or damaged; nothing is written then.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config import arms, grid
from mamushi.config.checks import of_texts
from mamushi.io import paths
from mamushi.running.stage import Files, Job, root, writes
from mamushi.stages._settings import Config, Settings, axes, by_chance, setting, starts_of

if TYPE_CHECKING:
    from mamushi.evaluation.sad import Floats


class TableFiles(Files):
    """The folder in which they find what was measured, and where the tables go."""

    root: Path = root()
    out_folder: Path = writes("where to write the tables")


class Compared(Settings):
    """Axes of the grid, or of a study; ``ranked`` are its selectors that rank texts."""

    grid: dict[str, Any] = setting(lambda config, study=None: grid.comparison(config, study))
    ranked: list[str] = setting(
        lambda config, grid: of_texts(config, grid)["selectors"], default_factory=list
    )

    @property
    def of_texts(self) -> dict[str, Any]:
        """Return the axes with these selectors alone."""
        return {**self.grid, "selectors": self.ranked}


def tables(files: TableFiles, settings: Compared, job: Job) -> None:
    """Collect a grid's measurements: SAD, which curves differ, quality of the scores.

    ``sad_differences.rst`` says in words which curves differ, for the report.
    """
    from mamushi.evaluation.curves import sad_table
    from mamushi.evaluation.quality import selection_table
    from mamushi.evaluation.summary import sad_differences, sad_summary, verdict
    from mamushi.io import schemas
    from mamushi.io.files import atomic
    from mamushi.io.tables import publish

    of_tokens = set(settings.grid["selectors"]) - set(settings.ranked)
    sad = sad_table(settings.grid, files.root, of_tokens)
    differences = sad_differences(sad)
    found = [
        (schemas.SAD, sad),
        (schemas.SAD_SUMMARY, sad_summary(sad)),
        (schemas.SAD_DIFFERENCES, differences),
        (schemas.SELECTION, selection_table(settings.of_texts, files.root)),
    ]
    publish(files.out_folder, found, job.origin)
    with atomic(files.out_folder / "sad_differences.rst") as part:
        part.write_text(verdict(differences), encoding="utf-8")


class Effects(Compared):
    """``by_chance`` says which selectors are lists of chance, ``margin`` (nats per token) what loss
    of the retain domain is small."""

    by_chance: dict[str, bool] = setting(by_chance)
    margin: float = setting("evaluation.retain_margin")


def effects(files: TableFiles, settings: Effects, job: Job) -> None:
    """Collect what removals change on held-out texts, with errors over seeds and texts."""
    from mamushi.evaluation.effects import effects_table
    from mamushi.io import schemas
    from mamushi.io.tables import publish

    table = effects_table(settings.grid, settings.by_chance, settings.margin, files.root)
    publish(files.out_folder, [(schemas.EFFECTS, table)], job.origin)


def subgroups(files: TableFiles, settings: Compared, job: Job) -> None:
    """Collect who pays for a removal, and who is removed: loss and lists by the texts' labels."""
    from mamushi.evaluation.subgroups import subgroups_table
    from mamushi.io import schemas
    from mamushi.io.tables import publish

    table = subgroups_table(settings.grid, settings.ranked, files.root)
    publish(files.out_folder, [(schemas.SUBGROUPS, table)], job.origin)


class Refine(Settings):
    """A pair of unlearner and selector, where it starts, and how its budgets are refined."""

    dataset: str
    model: str
    unlearner: str
    selector: str
    start: str = setting(arms.start)
    seeds: list[int] = setting("unlearning.seeds")
    budgets: list[float] = setting("unlearning.budgets")
    fine: float | None = setting("unlearning.fine")
    target: float = setting("unlearning.target")


class RefineFiles(Files):
    root: Path = root()
    out: Path = writes("the sweep's budgets (JSON)")


def refine(files: RefineFiles, settings: Refine, job: Job) -> None:
    """Choose the finer budgets at which a pair of unlearner and selector is measured.

    The configured budgets say between which two the mean curve over seeds first reaches the target;
    the multiples of ``fine`` between these are added. Writes ``budgets`` (measured and added),
    ``added``, ``crossing`` and the mean ``recovery``.
    """
    import numpy as np

    from mamushi.evaluation.crossing import first_crossing, refine
    from mamushi.io.files import write_json

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


class HalfGap(Settings):
    """Axes and ``starts``, the endpoints by model; ``target`` and cap of the half-gap budget."""

    grid: dict[str, Any] = setting(lambda config: axes(config, "unlearning"))
    starts: dict[str, str] = setting(lambda config: starts_of(config, "unlearning"))
    target: float = setting("unlearning.target")
    retain_cap: float = setting("unlearning.retain_cap")


def half_gap(files: TableFiles, settings: HalfGap, job: Job) -> None:
    """Collect the budget-perplexity curves of unlearning and retraining, and half-gap budgets."""
    from mamushi.evaluation.half_gap import half_gap_table, unlearning_table
    from mamushi.io import schemas
    from mamushi.io.tables import publish

    points = unlearning_table(settings.grid, settings.starts, files.root)
    budgets = half_gap_table(points, target=settings.target, retain_cap=settings.retain_cap)
    made = [(schemas.UNLEARNING, points), (schemas.HALF_GAP, budgets)]
    publish(files.out_folder, made, job.origin)


class Probes(Settings):
    """Axes of the models that are probed, and ``starts``, the endpoints that unlearning starts
    from, by model."""

    grid: dict[str, Any] = setting(grid.probed)
    starts: dict[str, str] = setting(lambda config: starts_of(config, "probe"))


def probes(files: TableFiles, settings: Probes, job: Job) -> None:
    """Collect what all models said, and what comes back by a little training, beside gold."""
    from mamushi.evaluation.probes import all_generations, relapse_table
    from mamushi.io import schemas
    from mamushi.io.tables import publish

    said = all_generations(settings.grid, files.root)
    back = relapse_table(settings.grid, settings.starts, files.root)
    made = [(schemas.GENERATIONS, said), (schemas.RELAPSE, back)]
    publish(files.out_folder, made, job.origin)


def ready(config: Config) -> list[str]:
    """Return the models that were contaminated before."""
    names = config["left"]["models"]
    return [name for name in names if config["models"][name].get("contaminated")]


class Left(Settings):
    """Axes, ``starts`` by model, and the models that are ``ready``, trained before."""

    grid: dict[str, Any] = setting(lambda config: axes(config, "left"))
    starts: dict[str, str] = setting(lambda config: starts_of(config, "left"))
    ready: list[str] = setting(ready)


def left(files: TableFiles, settings: Left, job: Job) -> None:
    """Collect what is left of forget texts in the models of all cells, beside the same of gold."""
    from mamushi.io import schemas
    from mamushi.io.tables import publish
    from mamushi_extras.left.membership_table import audit_texts

    table = audit_texts(settings.grid, settings.starts, settings.ready, files.root)
    publish(files.out_folder, [(schemas.MEMBERSHIP, table)], job.origin)


class Qualitative(Settings):
    """The first seed's runs of each dataset and model, and the selector of the ratio."""

    cells: list[dict[str, Any]] = setting(grid.shown)
    selector: str = setting("removal.ratio")


def qualitative(files: TableFiles, settings: Qualitative, job: Job) -> None:
    """Collect the first and the last texts of rankings."""
    import pyarrow as pa

    from mamushi.evidence.ranking import ends, excerpt, read_ranking, texts_of
    from mamushi.io import schemas
    from mamushi.io.provenance import provenance
    from mamushi.io.tables import publish

    rows: list[dict[str, Any]] = []
    read = {}
    for cell in settings.cells:
        scores = paths.under(files.root, paths.SCORES, **cell, selector=settings.selector)
        found = ends(read_ranking(scores))
        examples = paths.under(files.root, paths.EXAMPLES, dataset=cell["dataset"])
        read[f"scores/{cell['dataset']}/{cell['model']}/seed{cell['seed']}"] = scores
        read[f"examples/{cell['dataset']}"] = examples
        texts = texts_of(examples, [row["id"] for row in found])
        rows += [
            {**cell, "selector": settings.selector, **row, "text": excerpt(text)}
            for row, text in zip(found, texts, strict=True)
        ]
    table = pa.Table.from_pylist(rows, schema=schemas.QUALITATIVE_RANKING.schema)
    made = provenance(job.origin["settings"], **read)
    publish(files.out_folder, [(schemas.QUALITATIVE_RANKING, table)], made)


class Evidence(Settings):
    """``selector`` is the one whose scores estimate the log-density ratio."""

    cells: list[dict[str, Any]] = setting(lambda config: list(grid.cells(config["grid"])))
    predicted_cells: list[dict[str, Any]] = setting(grid.predicted)
    runtime_cells: list[dict[str, Any]] = setting(grid.shown)
    selector: str = setting("removal.ratio")
    targets: list[dict[str, Any]] = setting("evidence.targets")


def evidence(files: TableFiles, settings: Evidence, job: Job) -> None:
    """Join what the runs found before any retraining, and add the advice that follows."""
    from mamushi.evidence.advice import advice, read_frontier
    from mamushi.evidence.tables import joined, paper_rows
    from mamushi.io import schemas
    from mamushi.io.provenance import provenance
    from mamushi.io.tables import publish

    sources = (
        (schemas.FRONTIER, paths.FRONTIER, settings.cells),
        (schemas.CALIBRATION, paths.CALIBRATION, settings.cells),
        (schemas.DIAGNOSTICS, paths.DIAGNOSTICS, settings.cells),
        (schemas.CONFOUNDS, paths.CONFOUNDS, settings.cells),
        (schemas.GEOMETRY, paths.GEOMETRY, settings.cells),
        (schemas.PREDICTED, paths.PREDICTED, settings.predicted_cells),
        (schemas.RUNTIME, paths.RUNTIME, settings.runtime_cells),
    )
    runs = {kind.name: joined(kind, pattern, cells, files.root) for kind, pattern, cells in sources}
    read = {
        f"{kind.name}/{cell['dataset']}/{cell['model']}/seed{cell['seed']}": paths.under(
            files.root, pattern, **cell
        )
        for kind, pattern, cells in sources
        for cell in cells
    }
    curves = [
        row
        for cell in settings.cells
        for row in read_frontier(paths.under(files.root, paths.FRONTIER, **cell))
    ]
    targets = [(one["target"], one["value"]) for one in settings.targets]
    advised = advice(curves, targets, runs["predicted"].to_pylist())
    tell, measured, timed = (
        runs[name].to_pylist() for name in ("diagnostics", "geometry", "runtime")
    )
    paper = paper_rows(tell, measured, timed, settings.selector)
    found = [(kind, runs[kind.name]) for kind, _, _ in sources]
    found += [(schemas.ADVICE, advised), (schemas.PAPER, paper)]
    publish(files.out_folder, found, provenance(job.origin["settings"], **read))
