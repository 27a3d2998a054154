"""What each row of a user's table is: its text, id, domain and section."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config.sources import is_unlabelled
from mamushi.data.cells import Cells, take, to_cells
from mamushi.data.labels import COLUMN
from mamushi.data.raw import Raw
from mamushi.errors import UserError, located
from mamushi.io.domains import SECTIONS, TURNS, name_of
from mamushi_curate.tables.columns import column_of, filled, numbers_or_categories, other_columns
from mamushi_curate.tables.conversations import Conversations, Spoken, text_columns
from mamushi_curate.tables.expression import columns_in, evaluate
from mamushi_curate.tables.lines import Dialect, check_text
from mamushi_curate.tables.readers import FileTable, name_at, read_file_columns

_NUMBER = re.compile(r"\s*([-+]?[\d.]+(e[-+]?\d+)?|nan)?\s*", re.IGNORECASE)


def needed_columns(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns that the settings of the loader ``table`` name. Raises ``UserError`` for a
    bad expression."""
    single = [settings.get(key) for key in ("id", "section", "group")]
    columns = [*text_columns(settings["text"]), *filter(None, single), *settings["labels"]]
    for mark in (settings["forget"], settings["retain"] or {}):
        columns += columns_in(mark["where"]) if "where" in mark else []
    return list(dict.fromkeys(columns))


def read_raw(settings: Mapping[str, Any]) -> Raw:
    """Read a table as it is, by the settings of its loader. Raises ``UserError`` for numbers in the
    place of texts, a missing id or mark, a row of both domains, and a domain without rows."""
    path, dialect = Path(settings["path"]), Dialect.of(settings)
    needed = needed_columns(settings)
    asked = settings["other_columns"] and not is_unlabelled(settings)
    others = other_columns(path, needed, dialect) if asked else []
    table = read_file_columns(path, [*needed, *others], dialect)
    n, section, group = len(table.places), settings["section"], settings.get("group")
    spoken = Conversations(settings["text"], settings.get("part", "whole"))
    texts, turns = _texts_and_turns(table, spoken)
    if all(map(_NUMBER.fullmatch, texts)):
        problem = f"column {settings['text']!r} holds numbers alone, or nothing"
        raise UserError(problem, where=path, do="name the column with the texts")
    forget, stays = _domains(table, settings)
    numbers = to_cells(zip(map(str, range(1, n + 1))))[0]
    columns: dict[str, Any] = {
        "ids": _names(table, settings["id"]) if settings["id"] else numbers,
        "texts": texts,
        "forget": forget,
        "section": _sections(table, section, settings["section_values"]) if section else [None] * n,
        "stratum": [""] * n,
        "places": table.places,
        "group": _names(table, group, may_lack=True) if group else None,
    }
    labels: dict[str, Any] = {name: table.columns[name] for name in settings["labels"]}
    for name in others:
        if (values := numbers_or_categories(table.columns[name])) is not None:
            labels[f"{COLUMN}{name}".removeprefix("label_")] = values
    metadata: dict[str, Any] = {"part": spoken.part} if spoken.are_turns else {}
    metadata |= {"roles": sorted(spoken.roles)} if spoken.roles else {}
    if spoken.are_turns and turns.column.null_count < n:
        labels[TURNS] = turns
    if settings.get("assistant_only_loss"):
        if TURNS not in labels:
            problem = "assistant_only_loss is of turns, and there are none"
            do = "name a column of conversations, all of which is ranked, or leave it out"
            raise UserError(problem, where=path, do=do)
        metadata["assistant_only_loss"] = True
    left_out = n - int(stays.sum())
    return Raw(
        **{name: take(column, stays) for name, column in columns.items()},
        labels={name: take(column, stays) for name, column in labels.items()},
        sources=table.digests,
        dropped={"neither forget nor retain": left_out} if left_out else {},
        extra_metadata=metadata,
    )


def _texts_and_turns(table: FileTable, conversations: Conversations) -> list[Cells]:
    """Return the texts, null counting as empty, and of conversations their turns. Raises
    ``UserError`` for a text that is none."""
    columns = [table.columns[name] for name in conversations.columns]

    def read() -> Iterator[Spoken]:
        for place, *cells in zip(table.places, *columns, strict=True):
            spoken = conversations.read(dict(zip(conversations.columns, cells, strict=True)), place)
            check_text(spoken.text, place)
            yield spoken

    return to_cells(read(), 2)


def _domains(
    table: FileTable, settings: Mapping[str, Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two masks (n,): rows of the forget domain, and rows of either domain. A row is of
    neither if both domains are marked and it has no mark. Unmarked tables have no forget rows."""
    n, retained = len(table.places), (settings["retain"] or {}).get("where")
    if (marked := settings["forget"].get("where")) is None:
        return np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    forget = _marked_rows(table, marked, may_lack=retained is not None)
    retain = _marked_rows(table, retained, may_lack=True) if retained else ~forget
    if (both := np.flatnonzero(forget & retain)).size:
        problem, do = "of the forget and of the retain domain", "make them exclude each other"
        raise UserError(problem, where=table.places[int(both[0])], do=do)
    for domain, where, rows in (("forget", marked, forget), ("retain", retained, retain)):
        if not (rows.any() or settings.get("answers")):
            true_of = (
                f"{where!r} is true of no row" if where else f"{marked!r} is true of every row"
            )
            problem = f"the {domain} domain has no texts: {true_of}"
            raise UserError(problem, where=table.file)
    return forget, forget | retain


def _marked_rows(table: FileTable, where: str, *, may_lack: bool) -> NDArray[np.bool_]:
    """Return for which rows (n,) the expression ``where`` is true. Raises ``UserError`` if that
    depends on an empty cell, unless values ``may_lack``."""
    columns = dict[str, Any]()
    for name in columns_in(where):
        with located(f"{table.file}, column {name!r}"):
            columns[name] = column_of(table.columns[name], typed=table.typed)
    marks = evaluate(where, columns, table.file)
    if marks.null_count and not may_lack:
        row = pc.index(marks.is_null(), True).as_py()
        name = next(name for name in columns if not filled(columns[name])[row].is_valid)
        problem = f"column {name!r} is empty, and {where!r} hangs on it"
        do = "give every row a value, or say what an empty cell means, as in 'x is null or ...'"
        raise UserError(problem, where=table.places[row], do=do)
    return np.asarray(marks.fill_null(False))


def _names(table: FileTable, column: str, *, may_lack: bool = False) -> Cells:
    """Return each cell's name, None where it has none. Raises ``UserError`` at the first of these,
    unless names ``may_lack``, and at a cell of several values."""

    def names() -> Iterator[tuple[str | None]]:
        for value, place in zip(table.columns[column], table.places, strict=True):
            name = name_at(value, column, place)
            if name is None and not may_lack:
                problem = f"column {column!r} is {value!r}"
                raise UserError(problem, where=place, do="give every row a value")
            check_text(name or "", place)
            yield (name,)

    return to_cells(names())[0]


def _sections(table: FileTable, column: str, mapping: Mapping[str, str]) -> list[str | None]:
    """Return the ready-made section of each row, None where the cell is empty."""
    section_of = {name: name for name in SECTIONS} | dict(mapping)
    names = [name_of(value) for value in table.columns[column]]
    for name, place in zip(names, table.places, strict=True):
        if name is not None and name not in section_of:
            do = f"known are {', '.join(section_of)}; others go into section_values"
            raise UserError(f"section {name!r} in column {column!r}", where=place, do=do)
    return [None if name is None else section_of[name] for name in names]
