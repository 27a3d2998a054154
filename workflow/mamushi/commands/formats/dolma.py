"""folder of Dolma attributes, a file for each file of the data, row by row: 1 for what is listed"""

from __future__ import annotations

import gzip
from itertools import groupby
from pathlib import Path

from mamushi.commands._source import Source, json_line
from mamushi.data.rewriting import ending

FOLDER = True
TEXTS = True
ATTRIBUTE = "mamushi__removal__listed"
"""Experiment, tagger and name, as Dolma's taggers spell them."""


def write(source: Source, out: Path) -> None:
    """Write a span over the whole text, with its score, for every document: the mixer reads
    attributes beside the documents, which have to have the same number and order."""
    for file, rows in groupby(source.rows(), key=lambda row: row.file):
        # The name of the documents, which Dolma expects to be packed by gzip.
        place = file.relative_to(source.data) if source.data.is_dir() else Path(file.name)
        stem = Path(place.stem).stem if ending(place)[1] else place.stem
        path = out / place.with_name(f"{stem}.jsonl.gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a time in it, so that the same list gives the same bytes.
        with gzip.GzipFile(path, "wb", mtime=0) as handle:
            for row in rows:
                span = [0, len(row.cells["text"]), float(row.on_the_list)]
                line = json_line({"id": row.id, "attributes": {ATTRIBUTE: [span]}})
                handle.write(line.encode())
