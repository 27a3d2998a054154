"""Raw files of a dataset -> its examples table, the duplicates that were dropped, and its card.

Loads the rows, drops empty texts, duplicates and cross-posts, and divides what remains into the
sections. Nothing is written unless all of it succeeds.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mamushi.configuration.sources import contents, files
from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, writes
from mamushi.stages._settings import Config, Settings


class Examples(Settings):
    """Settings of the stage ``examples``; ``loader`` and ``kind`` are of the dataset's loader."""

    dataset: str
    kind: str
    loader: dict[str, Any]
    sections: dict[str, float]
    limit: dict[str, int | None]
    data: dict[str, Any]
    planted: dict[str, Any] | None = None
    inputs: dict[str, str] = field(default_factory=dict)


def settings(config: Config, dataset: str) -> Examples:
    definition = config["datasets"][dataset]
    loader = plugin("dataset", definition["kind"])
    return Examples(
        dataset=dataset,
        kind=definition["kind"],
        loader={key: definition[key] for key in loader.settings},
        sections=definition["sections"],
        limit=definition["limit"],
        data=config["data"],
        planted=definition["planted"],
        inputs=contents(files(definition)),
        code=digest(__name__, loader.module),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = writes("examples.parquet to write")
    duplicates: Path = writes("duplicates.parquet to write")
    card: Path = writes("card.json to write")
    cache: Path = option("folder for downloads")


def run(files: Files, settings: Examples, job: Job) -> None:
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
    from mamushi.data.examples import build, card
    from mamushi.registry import load

    try:
        raw = load("dataset", settings.kind).load(settings.loader, files.cache)
        table, duplicates, counts = build(
            raw, settings.sections, settings.limit, settings.data, settings.planted
        )
    except UserError as error:
        raise UserError(str(error), where=f"dataset {settings.dataset}") from None
    for name, n in counts["sections"].items():
        texts = f"{n['forget']:,} forget, {n['retain']:,} retain"
        print(f"{settings.dataset}: section {name}: {texts}", file=sys.stderr)
    needs = json.loads(os.environ.get("MAMUSHI_NEEDS", "{}")).get(settings.dataset, [])
    there = counts["sections"].get(INFERENCE, {})
    check(settings.dataset, [Need(*need) for need in needs], there)
    write_table(files.examples, schemas.EXAMPLES, table)
    # So that a removal list can tell that it joins what belongs together.
    of = {"examples": sha256(files.examples)}
    write_table(files.duplicates, schemas.DUPLICATES, duplicates, metadata=of)
    write_json(files.card, card(job.origin["settings"], raw, counts))
