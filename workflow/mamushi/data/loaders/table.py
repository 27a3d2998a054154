"""A table of your own: CSV, TSV, JSON Lines, Parquet or Arrow, one text a row.

Source: the file or folder ``path``. Forget: rows in which a column has one of some values, or of
which an expression over the columns is true. Retain: all others, or those that are marked in the
same way; then rows of neither are left out. Where nobody marked the domain, examples of it lie in
another table, or a blocklist finds them. A column may hold a ready-made split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.config.sources import unlabelled
from mamushi.data import readers
from mamushi.data.raw import Raw
from mamushi.data.rows import YES, answers_of, needed, rows
from mamushi.errors import UserError
from mamushi_extras.unlabelled.like import with_examples
from mamushi_extras.windows.windows import divided

SETTINGS = {
    "path": {
        "type": ["string", "null"],
        "default": None,
        "description": "The file (.csv, .tsv, .jsonl, each also with .zip, .gz or .zst, .parquet, "
        ".arrow), a folder of such files, or one that datasets saved.",
    },
    "text": {"type": "string", "default": "text", "description": "Column with the text."},
    "id": {
        "type": ["string", "null"],
        "default": None,
        "description": "Column with an id; null takes the row number, from 1.",
    },
    "forget": {
        "type": "object",
        # One or the other, of which none would be left unread.
        "oneOf": [
            {
                "required": ["column", "values"],
                "properties": {"column": {}, "values": {}},
                "additionalProperties": False,
            },
            {"required": ["where"], "properties": {"where": {}}, "additionalProperties": False},
            {
                "required": ["like"],
                "properties": {"like": {}, "unlike": {}, "text": {}, "screen": {}},
                "additionalProperties": False,
            },
            {
                "required": ["terms"],
                "properties": {"terms": {}, "unlike": {}, "text": {}},
                "additionalProperties": False,
            },
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
                "(an empty cell is an error unless it is asked for with `is null`).",
            },
            "like": {
                "type": "string",
                "format": "path",
                "description": "Table with examples of the domain, where the rows of `path` are a "
                "corpus in which nobody marked it.",
            },
            "unlike": {
                "type": "string",
                "format": "path",
                "description": "Table with texts that are not of the domain: a sample of the rest.",
            },
            "text": {
                "type": "string",
                "description": "Column with the text in these two; by default that of `path`.",
            },
            "screen": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "How many texts are ranked, or below 1 what share: those whose "
                "words are most like the examples. The others are read, and not kept.",
            },
            "terms": {
                "type": "string",
                "format": "path",
                "description": "Blocklist, a term or /regular expression/ a line, whose hits are "
                "taken for examples, though not all of them are.",
            },
        },
        "additionalProperties": False,
        "description": "What marks the forget domain: a column and its values, an expression, or "
        "examples of it beside the table.",
    },
    "retain": {
        "type": ["object", "null"],
        "default": None,
        "oneOf": [
            {"type": "null"},
            {
                "type": "object",
                "required": ["column", "values"],
                "properties": {"column": {}, "values": {}},
                "additionalProperties": False,
            },
            {
                "type": "object",
                "required": ["where"],
                "properties": {"where": {}},
                "additionalProperties": False,
            },
        ],
        "properties": {
            "column": {"type": "string", "description": "Column that marks the retain domain."},
            "values": {
                "type": "array",
                "minItems": 1,
                "description": "Its values in the retain domain.",
            },
            "where": {
                "type": "string",
                "description": "Expression, true of retain rows; of an empty cell neither this one "
                "nor that of forget is true.",
            },
        },
        "additionalProperties": False,
        "description": "What marks the retain domain, in the same way; rows of neither are left "
        "out. Null: all rows that are not of the forget domain.",
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
    "group": {
        "type": ["string", "null"],
        "default": None,
        "description": "Column whose equal values mark texts that are not independent, such as a "
        "thread or an author: they stay in one section and one fold. An empty cell is a text on "
        "its own.",
    },
    "answers": {
        "type": ["string", "null"],
        "default": None,
        "format": "path",
        "description": "What people said of its texts: merged.json of mamushi audit. It overrules "
        "the columns and, in a corpus, the examples.",
    },
    "quote": {
        "enum": ["none", None],
        "default": None,
        "description": 'Of CSV and TSV: none where `"` is a character as any other, and a line a '
        "row. Null: cells in double quotes may hold separators and line ends.",
    },
    "labels": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "Columns to carry along, as label_<name>.",
    },
}
FILES: dict[str, list[str]] = {"path": []}
SHARDS = True
"""A folder may be given, whose files are one table."""


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the table. Raises ``UserError`` as ``readers.read`` and ``rows.rows``."""
    if settings["path"] is None:
        raise UserError("no path to the table", do="set 'path' to a CSV, JSONL or Parquet file")
    path = Path(settings["path"])
    columns, screened = needed(settings), None
    if settings["forget"].get("screen"):
        from mamushi_extras.unlabelled.screen import screen

        table, screened = screen(settings, columns)
    else:
        table = readers.read(path, columns, quote=settings.get("quote") is None)
    raw = raw_of(table, settings, table.digests)
    how = settings.get("windows")
    raw = with_examples(raw, settings, screened) if unlabelled(settings) else divided(raw, how)
    if not settings.get("answers"):
        return raw
    # A person was asked about windows, where there are any.
    answers = answers_of(raw.ids, Path(settings["answers"]))
    pairs = zip(answers, raw.forget.tolist(), strict=True)
    forget = np.array([said == YES if said else forget for said, forget in pairs])
    return replace(raw, forget=forget, answers=answers)


def raw_of(
    table: readers.Table, settings: Mapping[str, Any], sources: Mapping[str, str] | None = None
) -> Raw:
    """Return the rows of a table that was made from the files ``sources``. Raises ``UserError`` as
    ``rows.rows``."""
    columns = rows(table, settings)
    kept = [row for row, forget in enumerate(columns["forget"]) if forget is not None]
    left_out = len(table.places) - len(kept)

    def of(column: list[Any]) -> list[Any]:
        return [column[row] for row in kept]

    return Raw(
        ids=of(columns["ids"]),
        texts=of(columns["texts"]),
        forget=np.array(of(columns["forget"]), dtype=bool),
        section=of(columns["section"]),
        stratum=[""] * len(kept),
        places=of(table.places),
        labels={name: of(_label(table, name)) for name in settings["labels"]},
        group=of(columns["group"]) if columns["group"] else None,
        sources=sources or {},
        dropped={"neither forget nor retain": left_out} if left_out else {},
    )


def _label(table: readers.Table, column: str) -> list[Any]:
    """Return a column to carry along, whose cells must be of one type."""
    try:
        pa.array(cells := table.columns[column])
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        what = f"cannot carry column {column!r} along ({error})"
        do = "leave it out of 'labels' or give its cells one type"
        raise UserError(what, where=table.file, do=do) from None
    return cells
