"""What each row of a table is: its text, id, domain and section.

Nothing heavy is imported, since every dry run comes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from mamushi.data.cells import Cells, store
from mamushi.data.conversations import Conversations, Spoken, text_columns
from mamushi.data.expression import column_of, filled, parse
from mamushi.data.lines import check_text
from mamushi.data.readers import FileTable, name_at, name_of
from mamushi.errors import UserError
from mamushi.io.domains import SECTIONS

_SHOWN = 5
"""Values of a column that a message lists."""
_LONGEST = 40
"""Characters of each."""
_MARKING = 3
"""Columns whose values a message lists."""


def needed_columns(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns that the settings of the loader ``table`` name. Raises ``UserError`` for a
    bad expression."""
    single = [settings.get(key) for key in ("id", "section", "group")]
    columns = [*text_columns(settings["text"]), *single, *settings["labels"]]
    for mark in (settings["forget"], settings["retain"] or {}):
        columns += parse(mark["where"]).names if "where" in mark else [mark.get("column")]
    return list(dict.fromkeys(name for name in columns if name is not None))


def raw_columns(table: FileTable, settings: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return columns of ``Raw`` by the settings of the loader ``table``: ``ids``, ``texts``,
    ``forget`` (None where a row is of neither domain), ``section``, ``group``, empty without a
    column of groups, and ``turns`` as JSON, empty where no text is a conversation.

    Raises ``UserError`` for a text that is not text, a missing or NaN id or mark, an unknown
    section, a value of a domain that no row has, and a row of both domains.
    """
    n, identifier, section = len(table.places), settings["id"], settings["section"]
    group = settings.get("group")
    texts, turns = texts_and_turns(
        table, Conversations(settings["text"], settings.get("part", "whole"))
    )
    numbers = table.numbers or range(1, n + 1)
    return {
        "ids": _names(table, identifier) if identifier else store(zip(map(str, numbers)))[0],
        "texts": texts,
        "turns": turns,
        "forget": _domains(table, settings),
        "section": _sections(table, section, settings["section_values"]) if section else [None] * n,
        "group": _names(table, group, False) if group else [],
    }


def _domains(table: FileTable, settings: Mapping[str, Any]) -> list[bool | None]:
    """Return of each row whether it is of the forget domain. Where both domains are marked, a row
    may be of neither: then None, and an empty cell marks nothing. Where nobody marked the domain,
    none is. Raises ``UserError`` where the marks leave a domain without rows."""
    forget, retain = settings["forget"], settings["retain"]
    if not {"where", "column"} & forget.keys():
        return [False] * len(table.places)
    domains: list[bool | None] = [*_marked(table, forget, retain is None)]
    if retain is not None:
        for row, retained in enumerate(_marked(table, retain, False)):
            if domains[row] and retained:
                problem, do = (
                    "of the forget and of the retain domain",
                    "make them exclude each other",
                )
                raise UserError(problem, where=table.places[row], do=do)
            domains[row] = domains[row] if domains[row] or retained else None
    for domain, mark, present in (("forget", forget, True), ("retain", retain or forget, False)):
        if present not in domains and not settings.get("answers"):
            text = mark.get("where") or f"{mark['column']} in {mark['values']}"
            rows = "every row" if domain == "retain" and retain is None else "no row"
            problem = f"the {domain} domain has no texts: {text!r} is true of {rows}"
            names = parse(text).names if "where" in mark else [mark["column"]]
            do = "; ".join(_values(table, name) for name in names[:_MARKING])
            raise UserError(problem, where=table.file, do=do or "name a column in it")
    return domains


def _values(table: FileTable, column: str) -> str:
    """Return the most common values of a column, for a message."""
    counts = Counter(str(name_of(cell))[:_LONGEST] for cell in table.columns[column])
    values = [f"{value!r} ({count:,} rows)" for value, count in counts.most_common(_SHOWN)]
    others = f" and {len(counts) - _SHOWN:,} other values" if len(counts) > _SHOWN else ""
    return f"column {column!r} has {', '.join(values)}{others}"


def _marked(table: FileTable, mark: Mapping[str, Any], filled_alone: bool) -> list[bool]:
    """Return which rows are marked; with ``filled_alone`` no cell of it may be empty."""
    if "column" in mark:
        return _among(table, mark["column"], mark["values"], filled_alone)
    where = parse(mark["where"])
    columns = {name: _arrow(table, name) for name in where.names}
    marks = where.marks(columns, len(table.places), table.file)
    if filled_alone and None in marks:
        row = marks.index(None)
        name = next(name for name in where.names if not filled(columns[name])[row].is_valid)
        problem = f"column {name!r} is empty, and {where.text!r} hangs on it"
        do = "give every row a value, or say what an empty cell means, as in 'x is null or ...'"
        raise UserError(problem, where=table.places[row], do=do)
    return [bool(mark) for mark in marks]


def _arrow(table: FileTable, name: str) -> Any:
    """Return a column as Arrow has it."""
    try:
        return column_of(table.columns[name], typed=table.typed)
    except UserError as error:
        where = f"{table.file}, column {name!r}"
        raise UserError(error.problem, where=where, do=error.do) from None


def _spells(cell: str, value: Any) -> bool:
    """Return whether a text cell spells a number or boolean: CSV files have no types, and ``1.0``
    is 1 there, and ``True`` is true, as pandas writes them."""
    if isinstance(value, bool):
        return cell.strip().lower() == str(value).lower()
    try:
        return Decimal(cell.strip()) == Decimal(str(value))
    except ArithmeticError:
        return False


def _names(table: FileTable, column: str, filled: bool = True) -> Cells:
    """Return each cell's name, None where it has none. Raises ``UserError`` at the first of these
    if they are to be ``filled``, and at one that holds several values."""

    def names() -> Iterator[str | None]:
        for value, place in zip(table.columns[column], table.places, strict=True):
            name = name_at(value, column, place)
            if name is None and filled:
                problem = f"column {column!r} is {value!r}"
                raise UserError(problem, where=place, do="give every row a value")
            check_text(name or "", place)
            yield name

    return store(zip(names()))[0]


def _among(table: FileTable, column: str, values: Sequence[Any], filled: bool) -> list[bool]:
    """Return which cells have one of ``values``. A value that never occurs is taken for a slip, and
    with ``filled`` so is an empty cell.

    In a table without types, a value that is given as text is a cell as it stands.
    """
    cells = _names(table, column, filled)
    present, matching = set(cells), set()
    for value in values:
        if table.typed or isinstance(value, str):
            same = present & {name_of(value)}
        else:
            same = {cell for cell in present if cell and _spells(cell, value)}
        if not same:
            where = f"{table.file}, column {column!r}"
            problem = f"no row has the value {name_of(value)!r}"
            raise UserError(problem, where=where, do=_values(table, column))
        matching |= same
    return [cell in matching for cell in cells]


def _sections(table: FileTable, column: str, mapping: Mapping[str, str]) -> list[str | None]:
    """Return the ready-made section of each row, None where the cell is empty."""
    section_of: dict[str | None, str | None] = {None: None, **{name: name for name in SECTIONS}}
    section_of.update(mapping)
    sections = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        name = name_of(value)
        if name not in section_of:
            do = f"known are {', '.join(filter(None, section_of))}; others go into section_values"
            raise UserError(f"section {name!r} in column {column!r}", where=place, do=do)
        sections.append(section_of[name])
    return sections


def texts_and_turns(
    table: FileTable, conversations: Conversations
) -> tuple[Sequence[str], Sequence[str | None]]:
    """Return the texts, null counting as empty, and of conversations their turns. Raises
    ``UserError`` for a text that is none."""
    columns = [table.columns[name] for name in conversations.columns]

    def read() -> Iterator[Spoken]:
        for place, *cells in zip(table.places, *columns, strict=True):
            spoken = conversations.read(dict(zip(conversations.columns, cells, strict=True)), place)
            check_text(spoken.text, place)
            yield spoken

    texts, turns = store(read(), 2)
    return texts, turns if conversations.are_turns else []
