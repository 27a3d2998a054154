"""A table of your own: CSV, TSV, JSON Lines (each plain or zipped) or Parquet, one text a row.

Source: the file ``path``. Forget: rows in which a column has one of some values, or of which an
expression over the columns is true. Retain: all others. A column may hold a ready-made split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts.files import sha256
from mamushi.artifacts.tables import SECTIONS
from mamushi.data import readers
from mamushi.data.expression import parse
from mamushi.data.raw import Raw
from mamushi.data.readers import name_of
from mamushi.errors import UserError

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

NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
"""A number as text. With zeros before it, it is taken for a code, such as 007."""

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
        forget = _among(table, mark["column"], mark["values"])
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


def spelled(cell: str) -> str:
    """The name of the number or boolean that a text cell spells, else the cell.

    CSV files have no types: ``1.0`` is 1 there, and ``True`` is true, as pandas writes them.
    """
    bare = cell.strip()
    if bare.lower() in ("true", "false"):
        return bare.lower()
    number = NUMBER.fullmatch(bare)
    if number is None:
        return cell
    # Whole numbers stay text, so that no digit of a long one is lost.
    whole = not (number[1] or number[2])
    return bare.removeprefix("+") if whole else name_of(float(bare)) or cell


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


def _among(table: readers.Table, column: str, values: Sequence[Any]) -> list[bool]:
    """Which cells have one of ``values``. A value that never occurs is taken for a slip.

    In a table without types, cells count as what they spell; a value that is given as text is first
    looked for as it stands, so that ``"1.1"`` and ``"1.10"`` may be two versions.
    """
    cells = named_values(table, column)
    names = cells if table.typed else [spelled(cell) for cell in cells]
    as_it_stands, by_name = set(), set()
    found, known = set(cells), set(names)
    for value in values:
        name = name_of(value)
        if isinstance(value, str) and name in found:
            as_it_stands.add(name)
        elif name in known:
            by_name.add(name)
        else:
            shown = ", ".join(sorted(found)[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
            raise UserError(
                f"no row has the value {name!r}",
                where=f"{table.file}, column {column!r}",
                do=f"its values are {shown}",
            )
    return [
        cell in as_it_stands or name in by_name for cell, name in zip(cells, names, strict=True)
    ]


def _sections(table: readers.Table, column: str, mapping: Mapping[str, str]) -> list[str | None]:
    """The ready-made section of each row, None where the cell is empty."""
    known = {name: name for name in SECTIONS} | dict(mapping)
    sections: list[str | None] = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        name = name_of(value)
        if name is not None and name not in known and not table.typed:
            name = spelled(name)
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
