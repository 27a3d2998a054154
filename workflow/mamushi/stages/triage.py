"""List texts that look like the other domain: mislabelled, or where the two domains overlap.

By the out-of-fold scores of the selector that estimates the log-density ratio, and its refits.
Texts are shown by their beginning, with profanity masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Cell, Config


class Triage(Cell):
    """Settings of the stage ``triage``; ``selector`` is the one that estimates the ratio."""

    selector: str


def settings(config: Config, dataset: str, model: str, seed: int) -> Triage:
    return Triage(
        dataset=dataset,
        model=model,
        seed=seed,
        selector=config["removal"]["ratio"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    scores: Path = reads("the scores table")
    refits: Path = reads("their refits")
    out: Path = writes("the triage table to write")
    csv: Path = writes("the same for people")


def run(files: Files, settings: Triage, job: Job) -> None:
    """Write ``triage``, empty where the scores can tell nothing; the metadata say why, and count
    the texts. Raises ``UserError`` for a missing or damaged file, and for scores of other examples.
    """
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_csv, write_table
    from mamushi.evidence.diagnostics import read_scores
    from mamushi.evidence.ranking import excerpt, texts_of
    from mamushi.evidence.triage import refusal, triage
    from mamushi.selection.refits import WHOLE, of_table

    scores = read_scores(files.scores)
    ids = read_table(files.scores, schemas.SCORES, ["id"])["id"].to_numpy().astype(np.object_)
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    if (why := refusal(scores.score, scores.forget)) is None:
        found = of_table(read_table(files.refits, schemas.REFITS))
        again = [scored for part, _, scored in found if part == WHOLE]
        rows, counts = triage(ids, scores.score, scores.forget, scores.fold, again)
        texts = texts_of(files.examples, [row["id"] for row in rows])
        about = {**settings.cell, "selector": settings.selector}
        rows = [
            {**about, **row, "text": excerpt(text)} for row, text in zip(rows, texts, strict=True)
        ]
        print(
            f"{counts['forget']} of {int(scores.forget.sum())} forget texts look like retain, and "
            f"{counts['retain']} of {int((~scores.forget).sum())} retain texts like forget"
        )
    else:
        print(f"no text is named: {why}")
    table = pa.Table.from_pylist(rows, schema=schemas.TRIAGE.schema)
    about = {"provenance": job.origin, "details": {"why": why, "looks_like_the_other": counts}}
    write_table(files.out, schemas.TRIAGE, table, metadata=about)
    write_csv(files.csv, table)
