"""Score again by one selector, with other seeds, and cross-fitted ones on halves of the examples.

The lists rest on the scores alone. From these refits comes how far chance decides a ranking: which
texts are in the list for sure, how much of it a second run would list, and the estimator's own part
in the intervals of what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, selector
from mamushi.stages.score import Score


class Refits(Score):
    """Settings of the stage ``refits``: those of the scores, and the numbers of refits."""

    whole: int
    halves: int


def settings(config: Config, name: str, seed: int) -> Refits:
    definition = selector(config, name)
    module = plugin("selector", definition.kind).module
    return Refits(
        **vars(definition), seed=seed, **config["evidence"]["refits"], code=digest(__name__, module)
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    embeddings: Path = reads("their embeddings")
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    base: Path | None = reads("refits of the selector that this derives from", default=None)
    out: Path = writes("the refits table to write")


def run(files: Files, settings: Refits, job: Job) -> None:
    """Write ``refits``. Raises ``UserError`` as the stage ``score`` does."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.registry import plugin
    from mamushi.selection.pool import read_pool
    from mamushi.selection.refits import as_table, of_table, refits

    texts = plugin("selector", settings.kind).literals.get("READS_TEXTS", False)
    pool = read_pool(files.embeddings, files.examples, layers=files.layers, texts=texts)
    bases = [] if files.base is None else list(of_table(read_table(files.base, schemas.REFITS)))
    found = refits(
        pool,
        settings.kind,
        settings.settings,
        settings.seed,
        settings.whole,
        settings.halves,
        bases,
    )
    write_table(
        files.out,
        schemas.REFITS,
        as_table(pool, found, schemas.REFITS.schema),
        metadata={"provenance": job.origin},
    )
