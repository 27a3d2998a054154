"""Collect the first and the last texts of rankings in the table qualitative_ranking.

The settings name the runs: in the workflow the first seed of each dataset and model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, root, writes
from mamushi.stages._settings import Config, Settings


class Qualitative(Settings):
    """Settings of the stage ``qualitative``."""

    cells: list[dict[str, Any]]
    selector: str


def settings(config: Config) -> Qualitative:
    return Qualitative(
        cells=grid.shown(config), selector=config["removal"]["ratio"], code=digest(__name__)
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the table")


def run(files: Files, settings: Qualitative, job: Job) -> None:
    """Write ``qualitative_ranking`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    import pyarrow as pa

    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import publish
    from mamushi.evidence.ranking import ends, excerpt, read_ranking, texts_of

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
