"""The files of a table: one, a folder of several, or a folder that `datasets` saved. They are known
by their names, so that what a rule reads can be declared without opening it."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mamushi.errors import UserError

FORMATS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"},
    **{".json": "json", ".txt": "txt"},
}
"""Ending -> format."""
PACKED = (".zip", ".gz", ".zst")
KNOWN = (
    "known are .csv, .tsv, .jsonl, .json and .txt, each also with .zip, .gz or .zst, .parquet, "
    ".arrow, .feather, and a folder of such files or a pattern such as train-*.parquet"
)
STATE = "state.json"
"""A file of `datasets` beside those of a data set."""
ABOUT = re.compile(
    r"_(?!delta_log$).*|\.(?!hoodie$).*|.*\.(md|rst|html|pdf|bib|cff|png|jpg|svg|py|ipynb|sh)"
    r"|.*\.(ya?ml|toml|cfg|sha256|md5|crc|receipt\.json)|(readme|licen[cs]e|notice|citation"
    r"|changelog|requirements|config|state|croissant|dataset_(dict|infos?))(-[^.]*)?(\.txt|\.json)?"
)
"""Names of what is about a table, or what other programs leave: caches, checksums, marks of a job
that has ended; but not the logs by which Delta Lake and Hudi tell which files count."""
URL = re.compile(r"(?:^|/)[\w.+-]{2,}:/")
"""How a URL begins, in which a path has one slash in the place of two."""


def format_of(path: Path) -> str | None:
    """Return the format of a file by its ending, None for one that is not known."""
    packing = packing_of(path)
    form = FORMATS.get(Path(path.name.lower().removesuffix(packing)).suffix)
    return None if packing and form in ("parquet", "arrow") else form


def packing_of(path: Path) -> str:
    """Return the ending that says how a file is packed; empty where none does."""
    return path.suffix.lower() if path.suffix.lower() in PACKED else ""


def written_name(path: Path) -> str:
    """Return the name for a rewritten copy of a file, without .zip: no zip archive is written."""
    return path.stem if packing_of(path) == ".zip" else path.name


def why_not_a_file(path: Path) -> str:
    """Say why a path cannot be read as a file: an unsupported URL, a folder, or nothing."""
    if URL.search(str(path)):
        return "is a URL of a kind, or in a place, that is not read; download it first"
    return "is a folder" if path.is_dir() else "no such file"


def find(path: str | Path) -> list[Path]:
    """Return the files of a table in the order of its rows, by a path or a pattern with ``*``.
    Raises ``UserError`` for a path where nothing is, an ending that is not known, and a folder
    without a table, or with what is not read of it and may hold rows."""
    path = Path(path)
    if path.is_file():
        if format_of(path) is None:
            problem = f"cannot tell the format from the ending {path.suffix!r}"
            raise UserError(problem, where=path, do=KNOWN)
        return [path]
    if (path / STATE).is_file():
        # As ``Dataset.save_to_disk`` lists them.
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        if state.get("_indices_data_files"):
            do = "open it with `datasets`, and save it again"
            raise UserError("lists rows by their indices", where=path / STATE, do=do)
        return [path / file["filename"] for file in state["_data_files"]]
    at = [*(path.iterdir() if path.is_dir() else path.parent.glob(path.name))]
    if not at and not path.is_dir():
        raise UserError(why_not_a_file(path), where=path, do="check the path")
    forms = {file: format_of(file) if file.is_file() else None for file in _walk_parts(at)}
    form = next(filter(None, forms.values()), None)
    if form is None:
        raise UserError("no table in this folder", where=path, do=KNOWN)
    if unread := [file.name for file in forms if forms[file] != form]:
        problem = f"holds what is not read with it: {', '.join(unread[:4])}"
        do = "take that out of the folder, or give the files themselves or a pattern for them"
        raise UserError(problem, where=path, do=do)
    return [*forms]


def _walk_parts(paths: Iterable[Path]) -> Iterator[Path]:
    """Iterate over what lies at paths and is not about a table, and then over that in folders."""
    for path in sorted(paths, key=lambda path: (path.is_dir(), path)):
        is_one = path.is_symlink() or path.name[0] in "._" or (path / STATE).exists()
        if path.is_dir() and not is_one:
            yield from _walk_parts(path.iterdir())
        elif not _describes_table(path):
            yield path


def is_part(path: Path) -> bool:
    """Return whether what lies in a folder is a file of its table."""
    return not _describes_table(path) and format_of(path) is not None and path.is_file()


def _describes_table(path: Path) -> bool:
    return ABOUT.fullmatch(path.name.lower()) is not None
