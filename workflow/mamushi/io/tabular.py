"""The files of a table: one, a folder of several, or a folder that `datasets` saved.

Known by their names, so that what a rule reads can be declared without opening it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from mamushi.errors import UserError

FORMATS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"},
    **{".json": "json", ".txt": "txt"},
}
"""Ending -> format."""
LINES = ("csv", "tsv", "jsonl", "json", "txt")
"""Formats that may be packed."""
PACKED = (".zip", ".gz", ".zst")
KNOWN = (
    "known are .csv, .tsv, .jsonl, .json (an array of objects), .txt (a text a line), each also "
    "with .zip, .gz or .zst, .parquet, .arrow, .feather, and a folder of such files or a pattern "
    "such as train-*.parquet"
)
STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files of `datasets` beside those of a data set, and above those of several splits."""
CACHES = ("cache-", "tmp")
"""How the caches of `datasets` begin, which hold rows that were made of the others."""
SIGNATURES = (".sha256", ".md5", ".crc", ".asc", ".sig")
"""Endings of files that are about a table,"""
PAPERS = (
    *("readme", "license", "licence", "copying", "notice", "citation", "changelog", "changes"),
    *("authors", "contributors", "source", "sources", "datasheet", "makefile", "dockerfile"),
    *("requirements", "checksums", "sha256sums", "md5sums"),
)
"""names of those with the ending .txt or none,"""
DESCRIPTIONS = (
    *("dataset_info", "dataset_infos", "dataset_dict", "state", "croissant"),
    *("dataset-metadata", "schema", "config"),
)
"""and of those of JSON."""
RECEIPT = ".receipt.json"
LAKES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders by which programs tell which files of a table count."""
URL = re.compile(r"(?:^|/)([a-z0-9]{3,}|hf|s3|gs):/+(.*)")
"""How a URL is written, in which a path has one slash in the place of two; kind and rest of it."""
SHOWN = 4
"""Names in a message."""


def format_of(path: Path) -> str | None:
    """Return the format of a file by its ending, None for one that is not known."""
    ending = path.suffix.lower()
    if ending in PACKED:
        format = FORMATS.get(Path(path.stem).suffix.lower())
        return format if format in LINES else None
    return FORMATS.get(ending)


def packing_of(path: Path) -> str:
    """Return the ending that says how a file is packed; empty where none does."""
    return path.suffix.lower() if path.suffix.lower() in PACKED else ""


def written_name(path: Path) -> str:
    """Return the name under which a file is written again: a zip archive unpacked."""
    return path.stem if packing_of(path) == ".zip" else path.name


def no_file(path: Path) -> str:
    """Return what is at a path at which no file is. What can be read but once is none: files are
    read again, for their digests."""
    if not path.exists():
        if URL.search(str(path)):
            return "is a URL of a kind, or in a place, that is not read; download it first"
        if path.is_symlink():
            return "no such file (it is a link to nothing)"
        # As the id of a data set is: `owner/name`.
        of_hub = not path.suffix and path.parent.name and not path.parent.exists()
        hub = f" (a data set of the hub is named hf://datasets/{path.parent.name}/{path.name})"
        return "no such file" + hub * bool(of_hub)
    return "is a folder" if path.is_dir() else "is no file but a pipe or a device"


def find(path: str | Path) -> list[Path]:
    """Return the files of a table in the order of its rows, by a path or a pattern with ``*``.

    Raises ``UserError`` for a path where nothing is, an ending that is not known, and a folder
    without a table, with several formats or several splits, or with what is not read of it and may
    hold rows.
    """
    path = Path(path)
    if path.is_file():
        if format_of(path) is None:
            problem = f"cannot tell the format from the ending {path.suffix!r}"
            raise UserError(problem, where=path, do=KNOWN)
        return [path]
    if "*" in path.name and path.parent.is_dir() and not path.is_dir():
        files = sorted(file for file in path.parent.glob(path.name) if file.name[0] != ".")
        if not files:
            problem = "no such file: nothing matches this pattern"
            raise UserError(problem, where=path, do="check the path")
        unread = [f"{file.name} (no table)" for file in files if not is_part(file)]
    elif not path.is_dir():
        url = URL.search(str(path)) if not path.exists() else None
        do = "give what was downloaded" if url else "check the path"
        raise UserError(no_file(path), where="://".join(url.groups()) if url else path, do=do)
    else:
        if (path / SPLITS).is_file():
            raise UserError("has several splits", where=path, do="name the folder of one of them")
        saved, entries = (path / STATE).is_file(), sorted(path.iterdir())
        files = _saved(path) if saved else [file for file in entries if is_part(file)]
        beside = {file: _unread(file, saved=saved) for file in {*entries}.difference(files)}
        if files and any(beside.values()) and not saved:
            # Of several formats none is the table's.
            others = [file for file in files if format_of(file) != format_of(files[0])]
            beside |= {file: format_of(file) for file in others}
        unread = [f"{file.name} ({reason})" for file, reason in sorted(beside.items()) if reason]
        if saved and not unread:
            return files
    if unread:
        shown = ", ".join(unread[:SHOWN]) + f" and {len(unread) - SHOWN} more" * (
            len(unread) > SHOWN
        )
        do = "take that out, or give the files themselves or a pattern for them"
        raise UserError(f"holds what is not read with it: {shown}", where=path, do=do)
    if not files:
        raise UserError("no table in this folder", where=path, do=KNOWN)
    return _one_table(path, files)


def is_part(path: Path) -> bool:
    """Return whether what lies in a folder is a file of its table."""
    if path.name[0] in "._" or _is_about(path):
        return False
    return format_of(path) is not None and path.is_file()


def _one_table(path: Path, files: list[Path]) -> list[Path]:
    """Return files that are the shards of one table. Raises ``UserError`` where they are not."""
    first = {str(format_of(file)): file.name for file in reversed(files)}
    formats = sorted(first)
    if len(formats) > 1:
        names = " and ".join(repr(first[name]) for name in formats)
        raise UserError(
            f"files of several formats ({', '.join(formats)}), as {names}",
            where=path,
            do="give a folder with the files of one table alone",
        )
    if formats == ["txt"] and len(files) > 1:
        problem = "has several .txt files, of which a text may be a line or all of one"
        do = "give one file with a text a line, or a table"
        raise UserError(problem, where=path, do=do)
    stems: dict[str, str] = {}
    for file in files:
        stem = file.stem if packing_of(file) else file.name
        if stem in stems:
            problem = f"has the same file twice, as {stems[stem]} and {file.name}"
            raise UserError(problem, where=path, do="take one of them out of the folder")
        stems[stem] = file.name
    return files


def _unread(path: Path, *, saved: bool) -> str | None:
    """Return why what lies beside the files of a table is not read though it may hold rows; None
    of what holds none by its name. ``saved``: whether `datasets` wrote the folder."""
    name = path.name
    if path.is_dir():
        if name in LAKES:
            return f"which makes it a table of {LAKES[name]}, whose files may be outdated"
        deeper = name[0] not in "._" and any(
            file.is_file() and _may_hold_rows(file) for file in path.rglob("[!.]*")
        )
        return "a folder with tables" if deeper else None
    is_row_format = format_of(path) not in (None, "json", "txt")
    # What other programs write there: caches, checksums, marks of a job that has ended.
    if name[0] == "." or (name[0] == "_" and not is_row_format) or _is_about(path):
        return None
    if saved and name.startswith(CACHES) and path.suffix == ".arrow":
        return None
    if not path.is_file():
        return "a link to nothing" if path.is_symlink() else "a pipe or a device"
    if saved and is_row_format:
        return f"which {STATE} does not list"
    return "no table by its name" if _may_hold_rows(path) else None


def _is_about(path: Path) -> bool:
    """Return whether a file beside a table is about it, by its name."""
    stem, ending = path.name.split(".")[0].lower(), path.suffix.lower()
    if path.name.endswith(RECEIPT) or ending in SIGNATURES:
        return True
    if ending == ".json":
        return stem in DESCRIPTIONS
    return ending in ("", ".txt") and stem.split("-")[0].split("_")[0] in PAPERS


def _may_hold_rows(path: Path) -> bool:
    """Return whether a file in a folder may hold rows, by its name: packed in any way, unfinished,
    or without an ending."""
    endings = {ending.lower() for ending in path.suffixes}
    return bool(endings.intersection(FORMATS) or not endings) and not _is_about(path)


def _saved(path: Path) -> list[Path]:
    """Return the files of a folder that ``Dataset.save_to_disk`` wrote, as it lists them."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        names = [str(file["filename"]) for file in state["_data_files"]]
        chosen = state.get("_indices_data_files")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UserError("damaged", where=path / STATE, do="save the data set again") from None
    if chosen:
        problem = "lists rows by their indices (_indices_data_files), in an old way"
        do = "open it with `datasets`, and save it again"
        raise UserError(problem, where=path / STATE, do=do)
    if len({*names}) < len(names) or any(Path(name).name != name for name in names):
        problem = "lists a file twice, or one outside its folder"
        raise UserError(problem, where=path / STATE, do="save the data set again")
    files = [path / name for name in names]
    for file in files:
        if not file.is_file():
            raise UserError(no_file(file), where=file, do="save the data set again")
    return files
