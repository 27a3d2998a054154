"""List the spans to leave out of the loss at one budget: the forget texts' highest token ratios."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Remove


def settings(config: Config, beta: str) -> Remove:
    """Settings of the stage ``spans``."""
    return Remove(beta=float(beta), code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    ratio: Path = reads("the token ratios")
    out: Path = writes("the spans to write")


def run(files: Files, settings: Remove, job: Job) -> None:
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.selection.actions import highest_spans
    from mamushi.selection.removals import count

    table = read_table(files.ratio, schemas.TOKEN_RATIO)
    ids = table["id"].to_pylist()
    ratios = [each.values.to_numpy() for each in table["ratio"]]
    spans = highest_spans(ratios, count(settings.beta, sum(map(len, ratios))))
    names = schemas.SPANS.schema.names
    rows = [
        dict(zip(names, (ids[place], *span), strict=True))
        for place, own in spans.items()
        for span in own
    ]
    found = pa.Table.from_pylist(rows, schema=schemas.SPANS.schema)
    write_table(files.out, schemas.SPANS, found, metadata=job.origin)
