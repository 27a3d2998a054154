"""Measure the anisotropy of a run's embeddings, and how the subspaces of the domains differ.

Reads the embeddings of the inference section and writes a row per number of leading components. The
file's metadata have the sizes and the width of the embeddings, and the numbers that the paper
quotes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Cell, Config


class Geometry(Cell):
    """Settings of the stage ``geometry``."""

    components: int


def settings(config: Config, dataset: str, model: str, seed: int) -> Geometry:
    return Geometry(
        dataset=dataset,
        model=model,
        seed=seed,
        components=config["evidence"]["components"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    embeddings: Path = reads("the embeddings table")
    out: Path = writes("the geometry table to write")


def run(files: Files, settings: Geometry, job: Job) -> None:
    """Write ``geometry``. Raises ``UserError`` for a missing or damaged file, a domain without
    examples, and embeddings that are not finite or all the same."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.evidence.geometry import geometry, read_embeddings, summary

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
