"""What scores and embeddings of one run tell before any retraining."""

from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config, setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import Cell


def frontier_budgets(config: Config) -> list[float]:
    """Return the budgets of the frontier and the grid's."""
    return sorted({*config["evidence"]["budgets"], *config["grid"]["budgets"]})


def described_selectors(config: Config) -> list[str]:
    """Return the selectors whose scores are described: that of the ratio and the grid's."""
    return list(dict.fromkeys([config["removal"]["ratio"], *of_selectors.grid_selectors(config)]))


class Calibrate(Cell):
    """``selector`` is the one that estimates the ratio."""

    selector: str = setting("removal.ratio")
    resamples: int = setting("evidence.resamples")


def calibrate(
    *,
    examples: Input,
    embeddings: Input,
    scores: Input,
    refits: Input | None = None,
    out: Output,
    checks: Output,
    settings: Calibrate,
    job: Job,
) -> None:
    """Estimate the log-density ratio of every text that is ranked: recalibrate the scores by
    cross-fitting, and check without a truth whether that is a density ratio. The refits say how
    much of it noise hides. The verdict stands in the metadata."""
    from operator import attrgetter

    import pyarrow as pa

    from mamushi.data.labels import read_texts
    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.confounds import leaking_columns
    from mamushi.evidence.dependence import dependence
    from mamushi.evidence.verdict import judge_scores, ratio_checks
    from mamushi.selection.metrics import DELONG_FACTOR
    from mamushi.selection.scores import read_pool

    # Of the pool's ids, strings of Python for ten million texts, nothing is kept.
    embedded, groups = attrgetter("embeddings", "groups")(read_pool(embeddings, examples))
    ratio = read_scores(scores, refits, groups)
    estimate = ratio.estimate()
    checked = ratio_checks(ratio, estimate, settings.resamples, settings.seed)
    texts = dependence(embedded, ratio.forget, groups)
    table = parquet.read_table(scores, schemas.SCORES, ["id", "domain", "score"])
    columns = read_texts(examples, table["id"]).columns
    leaks = leaking_columns(ratio.score, ratio.forget, columns, groups, DELONG_FACTOR)
    verdict = judge_scores(ratio, estimate, checked, texts, leaks)
    group = pa.nulls(len(table), pa.int64()) if groups is None else pa.array(groups)
    table = table.append_column("log_ratio", pa.array(estimate.log_ratio))
    table = table.append_column("group", group)
    metadata = {"provenance": job.origin, "verdict": verdict}
    sources = parquet.read_metadata(scores)["provenance"]["inputs"]
    stored = {**metadata, "sources": sources, "lost": estimate.lost}
    parquet.write_table(out, schemas.CALIBRATED, table, metadata=stored)
    rows = [{**settings.cell, "selector": settings.selector, **row} for row in checked]
    parquet.write_table(checks, schemas.CALIBRATION, rows, metadata=metadata)
    print(f"{out}: {verdict['words']}")


class Frontier(Cell):
    """``by_chance`` says of each selector whether it ranks without a look at the texts."""

    selectors: list[str] = setting(of_selectors.leading_first)
    budgets: list[float] = setting(frontier_budgets)
    by_chance: dict[str, bool] = setting(of_selectors.random_selectors)
    resamples: int = setting("evidence.resamples")


def frontier(
    *,
    examples: Input,
    scores: list[Input],
    ratio: Input,
    refits: Input | None = None,
    calibrated: Input,
    out: Output,
    settings: Frontier,
    job: Job,
) -> None:
    """Estimate the removal-preservation frontier of a run's selectors before any retraining: at
    every budget, 0 and 1 included, KL(p1 || p_-S) and KL(p2 || p_-S) by the calibrated ratio, with
    bands, and by the exact ratio where ``examples`` have it. ``scores`` are in the order of the
    settings' ``selectors``; ``ratio`` and ``refits`` are of the one that estimates the ratio."""
    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.frontier import ENDS, frontier_rows, read_truth, removal_order
    from mamushi.evidence.manifest import read_calibrated

    rankings = {
        name: removal_order(
            parquet.read_table(path, schemas.SCORES), settings.by_chance.get(name, False)
        )
        for name, path in zip(settings.selectors, scores, strict=True)
    }
    estimated = read_scores(ratio, refits, read_calibrated(calibrated).groups)
    truth = read_truth(examples, parquet.read_table(ratio, schemas.SCORES, ["id"])["id"])
    points = frontier_rows(
        estimated, rankings, settings.budgets, settings.resamples, settings.seed, truth
    )
    gains = [{f"gain{end}": point.pop(f"gain{end}") for end in ENDS} for point in points]
    verdict = parquet.read_metadata(calibrated)["verdict"]
    metadata = {"provenance": job.origin, "verdict": verdict, "gains": gains}
    rows = [{**settings.cell, **point} for point in points]
    parquet.write_table(out, schemas.FRONTIER, rows, metadata=metadata)


class Describe(Cell):
    """The selectors whose scores are described."""

    selectors: list[str] = setting(described_selectors)


def describe(
    *, scores: list[Input], calibrated: Input, diagnostics: Output, settings: Describe, job: Job
) -> None:
    """Describe the scores of a run, in the order of the settings' ``selectors``: spread, separation
    of the domains, calibration, folds."""
    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.diagnostics import diagnose
    from mamushi.evidence.manifest import read_calibrated

    ratio, rows = read_calibrated(calibrated), []
    for name, path in zip(settings.selectors, scores, strict=True):
        row = diagnose(read_scores(path, groups=ratio.groups), ratio.texts)
        rows.append({**settings.cell, "selector": name, **row})
    metadata = {"provenance": job.origin}
    parquet.write_table(diagnostics, schemas.DIAGNOSTICS, rows, metadata=metadata)


class Geometry(Cell):
    """Leading components that are looked at."""

    components: int = setting("evidence.components")


def geometry(*, embeddings: Input, out: Output, settings: Geometry, job: Job) -> None:
    """Measure the anisotropy of a run's embeddings, and how the subspaces of the domains differ, a
    row per number of leading components. The metadata have what the paper quotes."""
    import pyarrow.compute as pc

    from mamushi.evidence.geometry import geometry_columns, geometry_summary
    from mamushi.io.domains import FORGET
    from mamushi.selection.scores import read_matrix

    table = parquet.read_table(embeddings, schemas.EMBEDDINGS, ["id", "domain"])
    vectors = read_matrix(embeddings, table["id"].to_numpy())
    forget = pc.equal(table["domain"], FORGET).to_numpy()
    columns = geometry_columns(vectors, forget, settings.components)
    cell = {key: [value] * len(columns["k"]) for key, value in settings.cell.items()}
    counts = {"n_forget": int(forget.sum()), "n_retain": int((~forget).sum())}
    details = {**counts, "width": vectors.shape[1], **geometry_summary(columns)}
    metadata = {"provenance": job.origin, "details": details}
    parquet.write_table(out, schemas.GEOMETRY, {**cell, **columns}, metadata=metadata)
