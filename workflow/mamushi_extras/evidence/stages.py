"""What retraining is predicted to do, and how alike the selectors rank."""

from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Config, refuse, setting
from mamushi.config.selectors import grid_selectors, kind_of
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.domains import EVALUATION, INFERENCE
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet
from mamushi.stages._models import Cell
from mamushi.stages.analyses import frontier_budgets
from mamushi.stages.publish import Needs, Published
from mamushi.stages.tables import predicted_cells

VERSION = {"predict": 2}


def foreseen(config: Config) -> list[str]:
    """Return the grid's selectors of which counting words foresees what their lists do."""
    names = config["grid"]["selectors"]
    return [name for name in names if getattr(kind_of(config, name).code, "FORESEEN", True)]


class Predict(Cell):
    """Which lists, and ``max_length``, where trainings cut texts."""

    selectors: list[str] = setting(foreseen)
    budgets: list[float] = setting(frontier_budgets)
    max_length: int = setting("models.{model}.training.max_length")


def predict(
    *,
    examples: Input,
    tokens: Input,
    scores: list[Input] = (),  # type: ignore[assignment]
    out: Output,
    settings: Predict,
    job: Job,
) -> None:
    """Predict what retraining without each list would do, by a unigram model of what remains;
    nothing where texts are too few. ``scores``, of texts or of tokens, are in the order of the
    settings' ``selectors``."""
    from mamushi.data.labels import group_codes
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.evidence.schemas import PREDICTED
    from mamushi_extras.evidence.unigram import Proxy, predictions

    texts, held_out = (
        read_tokens(tokens, examples, section, settings.max_length)
        for section in (INFERENCE, EVALUATION)
    )
    is_held_out = len(set(held_out.domains)) == 2
    budgets, rows = sorted({0.0, 1.0, *map(float, settings.budgets)}), list[dict[str, Any]]()
    asked = dict(zip(settings.selectors, scores, strict=True))
    try:
        groups = group_codes(parquet.ranked_columns(examples, "group")["group"])
        proxy = Proxy(texts, held_out if is_held_out else None, groups)
    except UserError:
        asked = {}
    for name, path in asked.items():
        ranking = parquet.read_table(path, None)
        # One that ranks tokens has read the words by which one predicts without held-out texts.
        if is_held_out or "rank" in ranking.column_names:
            of_selector = predictions(proxy, ranking, budgets)
            rows += [{**settings.cell, "selector": name, **row} for row in of_selector]
    parquet.write_table(out, PREDICTED, rows, metadata={"provenance": job.origin})


def agreement(config: Config) -> Needs:
    """Return what retraining is predicted to do, and the rankings that are compared; the cells of
    which something is predicted, and the grid with its selectors of texts and those that are ranked
    to be compared."""
    refuse(grid.unlabelled_datasets(config, config["grid"]))
    cells = predicted_cells(config)
    names = dict.fromkeys([*grid_selectors(config), *config["evidence"]["compared"]])
    axes = {**config["grid"], "selectors": [*names]}
    files = [paths.PREDICTED.format(**cell) for cell in cells]
    return files + grid.expand(axes, paths.SCORES), {"cells": cells, "grid": axes}


TABLES = {
    "agreement": Published(
        "Evidence", ("predicted", "agreement"), "mamushi_extras.evidence.tables", agreement
    )
}
