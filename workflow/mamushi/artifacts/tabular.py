"""The files of a table: one, a folder of several, or a folder that `datasets` saved.

Known by their names, so that what a rule reads can be declared without opening it.
"""

from __future__ import annotations

import json
from pathlib import Path

from mamushi.errors import UserError

FORMATS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"},
}
"""Ending -> format."""
LINES = ("csv", "tsv", "jsonl")
"""Formats that may be packed."""
PACKED = (".zip", ".gz", ".zst")
KNOWN = (
    "known are .csv, .tsv, .jsonl (each also with .zip, .gz or .zst), .parquet, .arrow, and a "
    "folder of such files or a pattern such as train-*.parquet"
)
STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files of `datasets` beside those of a data set, and above those of several splits."""


def format_of(path: Path) -> str | None:
    """Return the format of a file by its ending, None for one that is not known."""
    ending = path.suffix.lower()
    if ending in PACKED:
        found = FORMATS.get(Path(path.stem).suffix.lower())
        return found if found in LINES else None
    return FORMATS.get(ending)


def packing_of(path: Path) -> str:
    """Return the ending that says how a file is packed; empty where none does."""
    return path.suffix.lower() if path.suffix.lower() in PACKED else ""


def no_file(path: Path) -> str:
    """Return what is at a path at which no file is. What can be read but once is none: files are
    read again, for their digests."""
    if not path.exists():
        return "no such file"
    return "is a folder" if path.is_dir() else "is no file but a pipe or a device"


def find(path: str | Path) -> list[Path]:
    """Return the files of a table in the order of its rows, by a path or a pattern with ``*``.

    Raises ``UserError`` for a path where nothing is, an ending that is not known, and a folder
    without a table, with several formats or several splits.
    """
    path = Path(path)
    if path.is_file():
        if format_of(path) is None:
            what = f"cannot tell the format from the ending {path.suffix!r}"
            raise UserError(what, where=path, do=KNOWN)
        return [path]
    if "*" in path.name and path.parent.is_dir():
        found = sorted(path.parent.glob(path.name))
        if all(map(Path.is_file, found)) and len({format_of(each) for each in found}) == 1:
            return found
    if not path.is_dir():
        raise UserError(no_file(path), where=path, do="check the path")
    if (path / SPLITS).is_file():
        raise UserError("has several splits", where=path, do="name the folder of one of them")
    if (path / STATE).is_file():
        return _saved(path)
    found = sorted(
        each
        for each in path.iterdir()
        if each.is_file() and each.name[0] not in "._" and format_of(each) is not None
    )
    formats = sorted({str(format_of(each)) for each in found})
    if not found:
        raise UserError("no table in this folder", where=path, do=KNOWN)
    if len(formats) > 1:
        raise UserError(
            f"files of several formats ({', '.join(formats)})",
            where=path,
            do="give a folder with the files of one table alone",
        )
    return found


def _saved(path: Path) -> list[Path]:
    """Return the files of a folder that ``Dataset.save_to_disk`` wrote, as it lists them."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        found = [path / str(each["filename"]) for each in state["_data_files"]]
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError("damaged", where=path / STATE, do="save the data set again") from None
    for each in found:
        if not each.is_file():
            raise UserError("no such file", where=each, do="save the data set again")
    return found
