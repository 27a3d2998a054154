"""A table of your own: CSV, TSV, JSON Lines (each plain or zipped) or Parquet, one text a row.

Source: the file ``path``. Forget: rows in which a column has one of some values, or of which an
expression over the columns is true. Retain: all others. A column may hold a ready-made split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import SECTIONS
from mamushi.data import readers
from mamushi.data.expression import parse
from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.files import sha256

SETTINGS = {
    "path": {
        "type": ["string", "null"],
        "default": None,
        "description": "The file: .csv, .tsv or .jsonl, each also with .zip, or .parquet.",
    },
    "text": {"type": "string", "default": "text", "description": "Column with the text."},
    "id": {
        "type": ["string", "null"],
        "default": None,
        "description": "Column with an id; null takes the row number, from 1.",
    },
    "forget": {
        "type": "object",
        "oneOf": [
            {"required": ["column", "values"]},
            {"required": ["where"]},
        ],
        "properties": {
            "column": {"type": "string", "description": "Column that marks the forget domain."},
            "values": {
                "type": "array",
                "minItems": 1,
                "description": "Its values in the forget domain; all others are retain.",
            },
            "where": {
                "type": "string",
                "description": "Expression, true of forget rows: toxic > 0.5 or topic in ['a'].",
            },
        },
        "additionalProperties": False,
        "description": "What marks the forget domain: a column and its values, or an expression.",
    },
    "section": {
        "type": ["string", "null"],
        "default": None,
        "description": "Column with a ready-made split; empty cells are split by the shares.",
    },
    "section_values": {
        "type": "object",
        "default": {},
        "additionalProperties": {"enum": ["contamination", "inference", "evaluation"]},
        "description": "Section for each value of that column, such as {train: inference}.",
    },
    "stratum": {
        "type": ["string", "null"],
        "default": None,
        "description": "Column whose values keep the sections' shares; null: the domain alone.",
    },
    "labels": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "Columns to carry along, as label_<name>.",
    },
}
FILES: dict[str, list[str]] = {"path": []}

SHOWN = 10
"""Values of a column that a message lists."""


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the table.

    Raises ``UserError`` for a missing or damaged file, a missing column, a text that is not text, a
    missing or NaN id or mark, a value that never occurs, and a bad expression.
    """
    if settings["path"] is None:
        raise UserError("no path to the table", do="set 'path' to a CSV, JSONL or Parquet file")
    path = Path(settings["path"])
    mark = settings["forget"]
    where = parse(mark["where"]) if "where" in mark else None
    marks = list(where.names) if where else [mark["column"]]
    optional = [settings[name] for name in ("id", "section", "stratum") if settings[name]]
    needed = dict.fromkeys([settings["text"], *optional, *settings["labels"], *marks])
    table = readers.read(path, list(needed))
    columns, places = table.columns, table.places
    if where is None:
        cells = named_values(table, mark["column"])
        forget = _among(cells, mark["values"], f"{table.file}, column {mark['column']!r}")
    else:
        values = {n: columns[n] if table.typed else infer(columns[n]) for n in where.names}
        forget = [
            where.holds({name: column[i] for name, column in values.items()}, place)
            for i, place in enumerate(places)
        ]
    return Raw(
        ids=(
            named_values(table, settings["id"])
            if settings["id"]
            else [str(i + 1) for i in range(len(places))]
        ),
        texts=_texts(table, settings["text"]),
        forget=np.array(forget, dtype=bool),
        section=(
            _sections(table, settings["section"], settings["section_values"])
            if settings["section"]
            else [None] * len(places)
        ),
        stratum=(
            named_values(table, settings["stratum"]) if settings["stratum"] else [""] * len(places)
        ),
        places=places,
        labels={name: _label(table, name) for name in settings["labels"]},
        sources={table.file: sha256(path)},
    )


def name_of(value: Any) -> str | None:
    """A cell as a name: ``1``, ``1.0`` and ``"1"`` agree, and so do ``true`` and ``"true"``.

    None for what is missing: null, NaN, infinite, or empty.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def named_values(table: readers.Table, column: str) -> list[str]:
    """Each cell's name. Raises ``UserError`` at the first that has none."""
    names = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        name = name_of(value)
        if name is None:
            raise UserError(
                f"column {column!r} is {value!r}", where=place, do="give every row a value"
            )
        readers.check_text(name, place)
        names.append(name)
    return names


def infer(column: Sequence[str]) -> list[Any]:
    """Text cells of a CSV column as numbers or booleans, where all that are not empty can be; empty
    cells are then None."""
    converters: tuple[Callable[[str], Any], ...] = (_boolean, int, float)
    for convert in converters:
        try:
            return [convert(cell) if cell.strip() else None for cell in column]
        except ValueError:
            continue
    return list(column)


def _boolean(cell: str) -> bool:
    if cell.strip().lower() not in ("true", "false"):
        raise ValueError
    return cell.strip().lower() == "true"


def _among(cells: Sequence[str], values: Sequence[Any], where: str) -> list[bool]:
    """Which cells have one of ``values``. A value that never occurs is taken for a slip."""
    wanted = {name_of(value) for value in values}
    found = set(cells)
    for name in wanted:
        if name not in found:
            shown = ", ".join(sorted(found)[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
            raise UserError(
                f"no row has the value {name!r}", where=where, do=f"its values are {shown}"
            )
    return [cell in wanted for cell in cells]


def _sections(table: readers.Table, column: str, mapping: Mapping[str, str]) -> list[str | None]:
    """The ready-made section of each row, None where the cell is empty."""
    known = {name: name for name in SECTIONS} | dict(mapping)
    sections: list[str | None] = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        name = name_of(value)
        if name is not None and name not in known:
            raise UserError(
                f"section {name!r} in column {column!r}",
                where=place,
                do=f"known are {', '.join(known)}; others go into section_values",
            )
        sections.append(None if name is None else known[name])
    return sections


def _label(table: readers.Table, column: str) -> list[Any]:
    """A column to carry along, whose cells must be of one type."""
    try:
        pa.array(table.columns[column])
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise UserError(
            f"cannot carry column {column!r} along ({error})",
            where=table.file,
            do="leave it out of 'labels' or give its cells one type",
        ) from None
    return table.columns[column]


def _texts(table: readers.Table, column: str) -> list[str]:
    """The texts; null counts as empty."""
    texts = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        if value is not None and not isinstance(value, str):
            raise UserError(
                f"column {column!r} is {value!r}, not text", where=place, do="name the text column"
            )
        readers.check_text(value or "", place)
        texts.append(value or "")
    return texts
