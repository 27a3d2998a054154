"""Correlate the scores of a run with length, duplication and the labels that came with the texts.

Reads the scores of any number of selectors. What a score does not tell, because its selector has
none for retain texts or too few texts differ, has a reason in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Cell, Config


class Confounds(Cell):
    """Settings of the stage ``confounds``."""


def settings(config: Config, dataset: str, model: str, seed: int) -> Confounds:
    return Confounds(dataset=dataset, model=model, seed=seed, code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    duplicates: Path = reads("the duplicates table")
    scores: list[Path] = reads("scores tables", named_by="selectors")
    selectors: list[str] = option("their selectors, in the same order")
    out: Path = writes("the confounds table to write")


def run(files: Files, settings: Confounds, job: Job) -> None:
    """Write ``confounds``. Raises ``UserError`` for a missing or damaged file, and for scores of
    other examples."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.evidence.confounds import confounds, read_texts
    from mamushi.evidence.diagnostics import read_scores

    rows = []
    for name, path in zip(files.selectors, files.scores, strict=True):
        scores = read_scores(path)
        ids = read_table(path, schemas.SCORES, ["id"])["id"].to_pylist()
        texts = read_texts(files.examples, files.duplicates, ids)
        found = confounds(scores.score, scores.forget, texts, cross_fitted=scores.fold is not None)
        rows += [{**settings.cell, "selector": name, **row} for row in found]
    table = pa.Table.from_pylist(rows, schema=schemas.CONFOUNDS.schema)
    write_table(files.out, schemas.CONFOUNDS, table, metadata={"provenance": job.origin})
