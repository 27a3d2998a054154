"""A table of your own: CSV, TSV, JSON Lines (each plain or zipped) or Parquet, one text a row.

Source: the file ``path``. Forget: rows in which a column has one of some values, or of which an
expression over the columns is true. Retain: all others. A column may hold a ready-made split.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts.files import sha256
from mamushi.data import readers
from mamushi.data.raw import Raw
from mamushi.data.rows import needed, rows
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
                "description": "Expression, true of forget rows: toxic > 0.5 or `a topic` in ['b'] "
                "(an empty cell is an error unless it is compared with None).",
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


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the table.

    Raises ``UserError`` for a missing or damaged file, a missing column, a text that is not text, a
    missing or NaN id or mark, a value that never occurs, and a bad expression.
    """
    if settings["path"] is None:
        raise UserError("no path to the table", do="set 'path' to a CSV, JSONL or Parquet file")
    path = Path(settings["path"])
    table = readers.read(path, needed(settings))
    found = rows(table, settings)
    return Raw(
        ids=found.ids,
        texts=found.texts,
        forget=np.array(found.forget, dtype=bool),
        section=found.section,
        stratum=found.stratum,
        places=table.places,
        labels={name: _label(table, name) for name in settings["labels"]},
        sources={table.file: sha256(path)},
    )


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
