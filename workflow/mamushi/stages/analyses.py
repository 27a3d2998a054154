"""What scores and embeddings of one run tell before any retraining."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.errors import UserError
from mamushi.running.stage import Files, Job, option, reads, writes
from mamushi.stages._settings import Cell, Config, by_chance, comparison, reads_words, setting


class Calibrate(Cell):
    """``selector`` is the one that estimates the ratio."""

    selector: str = setting("removal.ratio")
    resamples: int = setting("evidence.resamples")


class CalibrateFiles(Files):
    examples: Path = reads("the examples table, with groups of texts")
    embeddings: Path = reads("their embeddings, in which neighbours are looked for without groups")
    scores: Path = reads("scores of the selector that estimates the ratio")
    refits: Path | None = reads("their refits, if there are any", default=None)
    out: Path = writes("the calibrated ratios to write")
    checks: Path = writes("the calibration table to write")


def calibrate(files: CalibrateFiles, settings: Calibrate, job: Job) -> None:
    """Estimate the log-density ratio of every text that is ranked, from raw scores.

    The scores are recalibrated by cross-fitting, the refits say how much of the ratio its noise
    hides, and checks that need no truth say whether the result is a density ratio. What follows for
    a reader stands in the metadata as the verdict. Raises ``UserError`` for scores that lack one,
    or refits of other texts.
    """
    from mamushi.evidence.calibration import read_ratio
    from mamushi.evidence.manifest import calibrate
    from mamushi.io import schemas
    from mamushi.io.tables import read_metadata, read_table, write_table
    from mamushi.selection.pool import read_pool

    ratio = read_ratio(files.scores, files.refits)
    table = read_table(files.scores, schemas.SCORES)
    pool = read_pool(files.embeddings, files.examples)
    if table["id"].to_pylist() != pool.ids.tolist():
        what = f"its examples are not those of {files.embeddings}"
        raise UserError(what, where=files.scores, do="delete both and embed again")
    how = (settings.selector, settings.resamples, settings.seed)
    found, said, checked = calibrate(table, ratio, pool, *how, refitted=files.refits is not None)
    about = {"provenance": job.origin, "verdict": said}
    sources = read_metadata(files.scores)["provenance"]["inputs"]
    stored = {**about, "sources": sources, "lost": found.lost}
    write_table(files.out, schemas.CALIBRATED, found.table, metadata=stored)
    rows = [{**settings.cell, "selector": settings.selector, **row} for row in checked]
    write_table(files.checks, schemas.CALIBRATION, rows, metadata=about)
    print(f"{files.out}: {said['words']}")


def frontier_budgets(config: Config) -> list[float]:
    """Return the budgets of the frontier and the grid's."""
    return sorted({*config["evidence"]["budgets"], *config["grid"]["budgets"]})


class Predict(Cell):
    """``max_length`` is where trainings cut texts, ``read`` are the selectors that read the words
    by which one predicts without held-out texts, and ``of_tokens`` those that rank tokens."""

    budgets: list[float] = setting(frontier_budgets)
    max_length: int = setting("models.{model}.training.max_length")
    read: list[str] = setting(reads_words)
    of_tokens: list[str] = setting(lambda config: grid.token_rankings(config, config["grid"]))


class PredictFiles(Files):
    examples: Path = reads("examples table")
    tokens: Path = reads("token cache of the model")
    scores: list[Path] = reads("scores to rank by, of texts or of tokens", named_by="selectors")
    selectors: list[str] = option("the selector of each, in the same order")
    out: Path = writes("the predictions to write")


def predict(files: PredictFiles, settings: Predict, job: Job) -> None:
    """Predict what retraining without each list would do, by a unigram model of what remains."""
    from mamushi.data.labels import group_codes
    from mamushi.evidence.predicted import NoPrediction, Proxy, predictions
    from mamushi.io import schemas
    from mamushi.io.domains import EVALUATION, INFERENCE
    from mamushi.io.shards import ranked
    from mamushi.io.tables import read_table, write_table
    from mamushi.lm.tokens import read_tokens

    own, held = (
        read_tokens(files.tokens, files.examples, section, settings.max_length)
        for section in (INFERENCE, EVALUATION)
    )
    out = len(set(held.domains)) == 2
    budgets = sorted({0.0, 1.0, *map(float, settings.budgets)})
    rows: list[dict[str, Any]] = []
    about: dict[str, Any] = {"provenance": job.origin, "held_out": out, "reason": None}
    try:
        groups = group_codes(ranked(files.examples, "group")["group"])
        proxy = Proxy(own, held if out else None, groups)
    except NoPrediction as none:
        about["reason"] = str(none)
    else:
        for name, path in zip(files.selectors, files.scores, strict=True):
            if out or name not in settings.read:
                kind = schemas.TOKEN_SCORES if name in settings.of_tokens else schemas.SCORES
                found = predictions(proxy, read_table(path, kind), budgets)
                rows += [{**settings.cell, "selector": name, **row} for row in found]
    write_table(files.out, schemas.PREDICTED, rows, metadata=about)


class Frontier(Cell):
    """``by_chance`` says of each selector whether it ranks without a look at the texts."""

    budgets: list[float] = setting(frontier_budgets)
    by_chance: dict[str, bool] = setting(by_chance)
    resamples: int = setting("evidence.resamples")


class FrontierFiles(Files):
    scores: list[Path] = reads("scores to rank by", named_by="selectors")
    selectors: list[str] = option("the selector of each, in the same order")
    ratio: Path = reads("scores that estimate the log-density ratio")
    refits: Path | None = reads("their refits, if there are any", default=None)
    calibrated: Path = reads("the calibrated ratio, with the verdict on it")
    out: Path = writes("the frontier table to write")


def frontier(files: FrontierFiles, settings: Frontier, job: Job) -> None:
    """Estimate the removal-preservation frontier of a run's selectors, before any retraining.

    For every selector and budget, 0 and 1 included: KL(p1 || p_-S) and KL(p2 || p_-S) by the
    calibrated log-density ratio, with bands over the texts, the calibration and what the scores
    have lost. Raises ``UserError`` for scores of other examples, or a ratio that lacks a score.
    """
    from dataclasses import replace

    from mamushi.evidence.bootstrap import frontier
    from mamushi.evidence.calibration import read_ratio
    from mamushi.evidence.frontier import ranking_of
    from mamushi.evidence.manifest import read_calibrated
    from mamushi.io import schemas
    from mamushi.io.tables import read_metadata, read_table, write_table

    ratio = read_table(files.ratio, schemas.SCORES)
    rankings = {}
    for name, path in zip(files.selectors, files.scores, strict=True):
        scores = read_table(path, schemas.SCORES)
        if scores["id"] != ratio["id"]:
            what = f"ranks other examples than {files.ratio}"
            raise UserError(what, where=path, do="delete both and score again")
        rankings[name] = ranking_of(scores, bool(settings.by_chance.get(name, False)))
    estimated, _ = read_ratio(files.ratio, files.refits)
    estimated = replace(estimated, groups=read_calibrated(files.calibrated).codes("group"))
    how = (settings.budgets, settings.resamples, settings.seed)
    rows, relative = frontier(estimated, rankings, *how)
    stored = read_metadata(files.calibrated)["verdict"]
    about = {"provenance": job.origin, "verdict": stored, "relative": relative}
    table = [{**settings.cell, **row} for row in rows]
    write_table(files.out, schemas.FRONTIER, table, metadata=about)


class ScoresFiles(Files):
    scores: list[Path] = reads("scores tables", named_by="selectors")
    selectors: list[str] = option("their selectors, in the same order")
    out: Path = writes("the table to write")


class DiagnosticsFiles(ScoresFiles):
    calibrated: Path | None = reads(
        "the calibrated ratio, with the groups of texts; without it they are taken as independent",
        default=None,
    )


def diagnostics(files: DiagnosticsFiles, settings: Cell, job: Job) -> None:
    """Describe the scores of a run: spread, separation of the domains, calibration, folds.

    A row for each selector. What a score has not, because its selector has none for retain examples
    or uses no folds, is left empty.
    """
    from mamushi.evidence.diagnostics import diagnose, read_scores
    from mamushi.evidence.manifest import read_calibrated
    from mamushi.io import schemas
    from mamushi.io.tables import write_table

    ratio = None if files.calibrated is None else read_calibrated(files.calibrated)
    rows = [
        {**settings.cell, "selector": name, **diagnose(read_scores(path), ratio)}
        for name, path in zip(files.selectors, files.scores, strict=True)
    ]
    write_table(
        files.out,
        schemas.DIAGNOSTICS,
        {key: [row[key] for row in rows] for key in rows[0]},
        metadata={"provenance": job.origin},
    )


class ConfoundsFiles(ScoresFiles):
    examples: Path = reads("the examples table")
    duplicates: Path = reads("the duplicates table")


def confounds(files: ConfoundsFiles, settings: Cell, job: Job) -> None:
    """Correlate a run's scores with length, duplication and the labels that came with the texts.

    What a score does not tell, because its selector has none for retain texts or too few texts
    differ, has a reason in its place. Raises ``UserError`` for scores of other examples.
    """

    from mamushi.evidence.confounds import confounds, read_texts
    from mamushi.evidence.diagnostics import read_scores
    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table

    rows = []
    for name, path in zip(files.selectors, files.scores, strict=True):
        scores = read_scores(path)
        ids = read_table(path, schemas.SCORES, ["id"])["id"].to_pylist()
        texts = read_texts(files.examples, files.duplicates, ids)
        found = confounds(scores.score, scores.forget, texts, cross_fitted=scores.fold is not None)
        rows += [{**settings.cell, "selector": name, **row} for row in found]
    write_table(files.out, schemas.CONFOUNDS, rows, metadata={"provenance": job.origin})


class Geometry(Cell):
    """Leading components that are looked at."""

    components: int = setting("evidence.components")


class GeometryFiles(Files):
    embeddings: Path = reads("the embeddings table")
    out: Path = writes("the geometry table to write")


def geometry(files: GeometryFiles, settings: Geometry, job: Job) -> None:
    """Measure the anisotropy of a run's embeddings, and how the subspaces of the domains differ.

    A row per number of leading components. The file's metadata have the sizes and the width of the
    embeddings, and the numbers that the paper quotes. Raises ``UserError`` for a domain without
    examples, and embeddings that are not finite or all the same.
    """
    from mamushi.evidence.geometry import geometry, read_embeddings, summary
    from mamushi.io import schemas
    from mamushi.io.tables import write_table

    pool = read_embeddings(files.embeddings)
    try:
        columns = geometry(pool, settings.components)
    except UserError as error:
        raise UserError(error.what, where=files.embeddings, do=error.do) from None
    size = len(columns["k"])
    this = {key: [value] * size for key, value in settings.cell.items()}
    write_table(
        files.out,
        schemas.GEOMETRY,
        {**this, **columns},
        metadata={
            "provenance": job.origin,
            "details": {
                "n_forget": int(pool.forget.sum()),
                "n_retain": int((~pool.forget).sum()),
                "width": pool.width,
                **summary(columns),
            },
        },
    )


class Ranking(Cell):
    """Budgets of all lists, and of each selector why it is there for comparison alone, if so."""

    budgets: list[float] = setting(grid.budgets)
    compared: dict[str, str | None] = setting(
        lambda config: {name: comparison(config, name) for name in config["grid"]["selectors"]}
    )


class RankingFiles(Files):
    examples: Path = reads("the examples table")
    scores: list[Path] = reads("scores tables", named_by="selectors")
    refits: list[Path] = reads("their refits, if there are any", named_by="refitted", default=())
    stability: list[Path] = reads("how certain their lists are", named_by="selectors")
    tokens: list[Path] = reads("what is shown of rankings of tokens (JSON)", default=())
    selectors: list[str] = option("their selectors, in the same order")
    refitted: list[str] = option("the selectors of the refits", default=())
    out: Path = writes("the HTML file to write")


def ranking(files: RankingFiles, settings: Ranking, job: Job) -> None:
    """Make the page to browse a run's ranking of the forget set: one HTML file that opens offline.

    It opens with the first selector, and says of each what its own ranking is worth.
    Raises ``UserError`` for scores that rank other examples.
    """
    from functools import partial

    from mamushi.evidence.judgement import ranking_words
    from mamushi.evidence.ranking import read_ranking, texts_of
    from mamushi.io.files import atomic, read_json
    from mamushi.io.tables import read_metadata
    from mamushi_extras.pages.ranking_page import page, page_data

    rankings = {}
    again = dict(zip(files.refitted, files.refits, strict=True))
    for name, path, stable in zip(files.selectors, files.scores, files.stability, strict=True):
        own = read_metadata(stable)["separation"]
        why = settings.compared.get(name)
        known = {"verdict": ranking_words(own, why), "compared": why is not None}
        rankings[name] = read_ranking(path, again.get(name), **known)
    tokens = [read_json(path) for path in files.tokens]
    named: dict[str, Any] = {"provenance": job.origin, "tokens": tokens}
    data = page_data(rankings, partial(texts_of, files.examples), settings.budgets, named)
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    with atomic(files.out) as part:
        part.write_text(page(title, data), encoding="utf-8", newline="\n")
