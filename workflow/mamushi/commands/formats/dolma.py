"""folder of Dolma attributes, a file for each file of the data, row by row: 1 for what is listed"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO, cast

from mamushi.commands._source import Source, json_line
from mamushi.data.rewriting import ending

FOLDER = True
TEXTS = True
ATTRIBUTE = "mamushi__removal__listed"
"""Experiment, tagger and name, as Dolma's taggers spell them."""


def write(source: Source, out: Path) -> None:
    """A span over the whole text, with its score, for every document: the mixer reads attributes
    beside the documents, which have to have the same number and order."""
    file, handle = None, None
    try:
        for row in source.rows():
            if row.file != file:
                if handle is not None:
                    handle.close()
                file, handle = row.file, _opened(out / _name(source, row.file))
            assert handle is not None
            span = [0, len(row.cells["text"]), float(row.on_the_list)]
            line = json_line({"id": row.id, "attributes": {ATTRIBUTE: [span]}})
            handle.write(line.encode())
    finally:
        if handle is not None:
            handle.close()


def _name(source: Source, file: Path) -> Path:
    """The name of the documents, which Dolma expects to be packed by gzip."""
    place = file.relative_to(source.data) if source.data.is_dir() else Path(file.name)
    stem = Path(place.stem).stem if ending(place)[1] else place.stem
    return place.with_name(f"{stem}.jsonl.gz")


def _opened(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a time in it, so that the same list gives the same bytes.
    return cast("IO[bytes]", gzip.GzipFile(path, "wb", mtime=0))
