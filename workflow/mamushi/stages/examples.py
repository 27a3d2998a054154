"""Raw files of a dataset -> its examples table, the duplicates that were dropped, and its card.

Loads the rows, drops empty texts, duplicates and cross-posts, and divides what remains into the
sections. Nothing is written unless all of it succeeds.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Examples
from mamushi.running.stage import Job, option, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = writes("examples.parquet to write")
    duplicates: Path = writes("duplicates.parquet to write")
    card: Path = writes("card.json to write")
    cache: Path = option("folder for downloads")


def run(files: Files, chosen: Examples, job: Job) -> None:
    """Make the examples. Raises ``UserError``, with the dataset's name, for bad input, and for too
    few texts for the settings of a comparison.

    Those are no settings of this stage, since they do not change what it writes; the workflow hands
    over what they take in the environment, where Snakemake does not look for changes.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.domains import INFERENCE
    from mamushi.artifacts.files import sha256, write_json
    from mamushi.artifacts.tables import write_table
    from mamushi.configuration.counts import Need, check
    from mamushi.data.examples import build, card, summary
    from mamushi.errors import UserError
    from mamushi.registry import load

    try:
        raw = load("dataset", chosen.kind).load(chosen.loader, files.cache)
        table, duplicates, counts = build(
            raw, chosen.sections, chosen.limit, chosen.data, chosen.planted
        )
    except UserError as error:
        raise UserError(str(error), where=f"dataset {chosen.dataset}") from None
    for line in summary(counts):
        print(f"{chosen.dataset}: {line}", file=sys.stderr)
    needs = json.loads(os.environ.get("MAMUSHI_NEEDS", "{}")).get(chosen.dataset, [])
    there = counts["sections"].get(INFERENCE, {})
    check(chosen.dataset, [Need(*need) for need in needs], there)
    write_table(files.examples, schemas.EXAMPLES, table)
    # So that a removal list can tell that it joins what belongs together.
    of = {"examples": sha256(files.examples)}
    write_table(files.duplicates, schemas.DUPLICATES, duplicates, metadata=of)
    write_json(files.card, card(job.origin["settings"], raw, counts))
