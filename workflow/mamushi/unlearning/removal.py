"""Which texts to unlearn: the table `removals` of this program, or a list of one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data import readers
from mamushi.data.columnar import opened_columns
from mamushi.data.opening import open_unpacked
from mamushi.errors import UserError, located
from mamushi.io import paths, schemas, tabular
from mamushi.io.tables import MARK, read_table

OURS = {"id", "score", "rank", "copies"}
"""Columns by which a removal list of this program is known."""
SPACE = " \t"
"""What may stand around an id in plain text; other white space is its own."""


def read_ids(path: str | Path) -> list[str]:
    """Read the ids of a removal list, in its order.

    A table, of any format that is known and packed or not, has them in its column ``id``, and its
    other columns do not matter; any other file is plain text with an id a line, where blank lines
    and spaces and tabs around an id do not count; an id that is there again is there once. Raises
    ``UserError`` for a file that is missing or empty, has no such column, or a row without an id.
    Numbers are named as the loader of tables names them: 7 is "7".
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(tabular.no_file(path), where=path)
    if paths.wildcards(paths.REMOVAL, path):
        # Of this program, and so never read damaged.
        ids = read_table(path, schemas.REMOVALS, ["id"])["id"].to_pylist()
    elif _is_table(path) or tabular.packing_of(path):
        columns_of(path)
        table = readers.read_file_columns(path, ["id"])
        ids = [_text(*cell) for cell in zip(table.columns["id"], table.places, strict=True)]
    else:
        with open_unpacked(path) as handle, located(path):
            text = handle.read().decode("utf-8").lstrip("\ufeff")
        ids = [line.strip(SPACE) for line in re.split(r"\r\n?|\n", text) if line.strip()]
    if not ids:
        raise UserError("names no id", where=path)
    return [*dict.fromkeys(ids)]


def columns_of(path: Path) -> set[str] | None:
    """Return the columns of a file that is a table; None of another. Raises ``UserError`` for
    another table of this program, most of which name all texts."""
    if not path.is_file() or not _is_table(path):
        return None
    names, is_ours = {*readers.columns(path)}, False
    if tabular.format_of(path) == "parquet":
        with opened_columns(path) as (schema, _):
            is_ours = MARK.encode() in (schema.metadata or {})
    of_all = ({"id", "rank", "fold"}, {"id", "rank", "frequency"}, {"id", "domain", "section"})
    if not names >= OURS and (is_ours or any(names >= columns for columns in of_all)):
        do = "give removals/SELECTOR/betaB.parquet, or make one with mamushi list"
        raise UserError("is another table of a run, and no list", where=path, do=do)
    return names


def texts_of(path: Path) -> dict[str, str] | None:
    """Return the digest of each listed text by its id, in the order of a list of this program; None
    of another."""
    if not (columns_of(path) or set()) >= OURS:
        return None
    table = read_table(path, schemas.REMOVALS, ["id", "text_sha256"])
    return dict(zip(*(table[name].to_pylist() for name in ("id", "text_sha256")), strict=True))


def _is_table(path: Path) -> bool:
    """Return whether a list is a table by its ending; as plain text it has an id a line."""
    return tabular.format_of(path) not in (None, "txt")


def chosen_rows(ids: NDArray[np.str_], listed: list[str], where: object) -> NDArray[np.int64]:
    """Find the rows, ascending, of ``wanted`` in ``ids`` (texts,): in the order of the texts.

    So a list means the same however it is sorted. Raises ``UserError`` for ids that are not there.
    """
    in_examples = set(ids.tolist())
    unknown = [name for name in listed if name not in in_examples]
    if unknown:
        are = f"of its {len(listed)} ids are no forget texts of the inference section"
        raise UserError(f"{len(unknown)} {are}, the first is {unknown[0]!r}", where=where)
    requested = set(listed)
    return np.flatnonzero([name in requested for name in ids.tolist()]).astype(np.int64)


def _text(value: Any, place: str) -> str:
    name = readers.name_at(value, "id", place)
    if name is None:
        raise UserError("there is no id", where=place)
    return name
