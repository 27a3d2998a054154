"""What each row of a table is: its text, id, domain, section and stratum.

Both the loader of tables and the look at their first rows come here, so that what a dry run says of
a table is what the job would say. Nothing heavy is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mamushi.artifacts.domains import SECTIONS
from mamushi.data import readers
from mamushi.data.expression import parse
from mamushi.data.readers import name_of
from mamushi.errors import UserError

NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
"""A number as text. With zeros before it, it is taken for a code, such as 007."""

SHOWN = 10
"""Values of a column that a message lists."""
LONGEST = 60
"""Characters of a cell that a message shows."""
MOST_OPEN = 6
"""Columns of an expression whose types may yet change. With more of them, there are too many
combinations to try."""


@dataclass(frozen=True)
class Rows:
    """Parallel lists with one entry a row; see ``Raw``, of which they are a part."""

    ids: list[str]
    texts: list[str]
    forget: list[bool | None]
    """Whether a row is of the forget domain; None where it is of neither."""
    section: list[str | None]
    stratum: list[str]


def needed(settings: Mapping[str, Any]) -> list[str]:
    """The columns that the settings of the loader ``table`` name. Raises ``UserError`` for a bad
    expression."""
    marks = [
        name
        for mark in (settings["forget"], settings["retain"])
        if mark is not None
        for name in (parse(mark["where"]).names if "where" in mark else [mark["column"]])
    ]
    optional = [
        settings[name] for name in ("id", "section", "stratum") if settings[name] is not None
    ]
    return list(dict.fromkeys([settings["text"], *optional, *settings["labels"], *marks]))


def rows(table: readers.Table, settings: Mapping[str, Any]) -> Rows:
    """What the rows are by the settings of the loader ``table``.

    Raises ``UserError`` for a text that is not text, a missing or NaN id, stratum or mark, an
    unknown section, a value of a domain that no row has, and a row of both domains.
    """
    n = len(table.places)
    return Rows(
        ids=(
            named_values(table, settings["id"])
            if settings["id"] is not None
            else [str(i + 1) for i in range(n)]
        ),
        texts=_texts(table, settings["text"]),
        forget=_domains(table, settings["forget"], settings["retain"]),
        section=(
            _sections(table, settings["section"], settings["section_values"])
            if settings["section"]
            else [None] * n
        ),
        stratum=named_values(table, settings["stratum"]) if settings["stratum"] else [""] * n,
    )


def _domains(
    table: readers.Table, forget: Mapping[str, Any], retain: Mapping[str, Any] | None
) -> list[bool | None]:
    """Of each row whether it is of the forget domain. Where both domains are marked, a row may be
    of neither: then None, and an empty cell marks nothing."""
    if retain is None:
        return [*_marked(table, forget, alone=True)]
    unwanted, wanted = (_marked(table, mark, alone=False) for mark in (forget, retain))
    for place, one, other in zip(table.places, unwanted, wanted, strict=True):
        if one and other:
            raise UserError(
                "of the forget and of the retain domain",
                where=place,
                do="make `forget` and `retain` exclude each other",
            )
    return [
        True if one else False if other else None
        for one, other in zip(unwanted, wanted, strict=True)
    ]


def _marked(table: readers.Table, mark: Mapping[str, Any], *, alone: bool) -> list[bool]:
    """The rows of a domain. ``alone``: all others are of the other one, so every cell counts."""
    if "where" in mark:
        return _where(table, mark["where"], None if alone else False)
    return _among(table, mark["column"], mark["values"], alone)


def _where(table: readers.Table, text: str, empty: bool | None) -> list[bool]:
    """Of which rows an expression is true; ``empty`` where that hangs on an empty cell.

    Of the first rows of a file, what is wrong must be wrong whatever the types turn out to be: a
    column of CSV whose first cells are numbers is text once another one is.
    """
    where = parse(text)
    types = [_types(table, table.columns[name]) for name in where.names]
    if sum(len(each) > 1 for each in types) > MOST_OPEN:
        return [False] * len(table.places)
    mistakes = []
    for columns in product(*types):
        try:
            return [
                where.holds(dict(zip(where.names, cells, strict=True)), place, empty)
                for place, *cells in zip(table.places, *columns, strict=True)
            ]
        except UserError as error:
            mistakes.append(error)
    raise mistakes[0]


def _types(table: readers.Table, column: list[Any]) -> list[list[Any]]:
    """A column as it is typed, and as it may yet be."""
    if table.typed:
        return [column]
    inferred = infer(column)
    return [inferred] if table.whole or inferred == column else [inferred, column]


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


def named_values(table: readers.Table, column: str, filled: bool = True) -> list[str]:
    """Each cell's name, empty where it has none. Raises ``UserError`` at the first of these if
    they are to be ``filled``, and at one that holds several values."""
    names = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        if isinstance(value, list | dict | bytes):
            raise UserError(
                f"column {column!r} is {shown(value)}, not one value",
                where=place,
                do="name a column of numbers or text",
            )
        name = name_of(value)
        if name is None and filled:
            raise UserError(
                f"column {column!r} is {value!r}", where=place, do="give every row a value"
            )
        name = name or ""
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


def _among(table: readers.Table, column: str, values: Sequence[Any], filled: bool) -> list[bool]:
    """Which cells have one of ``values``. A value that never occurs is taken for a slip, and with
    ``filled`` so is an empty cell.

    In a table without types, cells count as what they spell; a value that is given as text is first
    looked for as it stands, so that ``"1.1"`` and ``"1.10"`` may be two versions.
    """
    cells = named_values(table, column, filled)
    names = cells if table.typed else [spelled(cell) for cell in cells]
    as_it_stands, by_name = set(), set()
    found, known = set(cells), set(names)
    for value in values:
        name = name_of(value)
        if isinstance(value, str) and name in found:
            as_it_stands.add(name)
        elif name in known or not table.whole:
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


def shown(value: Any) -> str:
    """A cell in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


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


def _texts(table: readers.Table, column: str) -> list[str]:
    """The texts; null counts as empty."""
    texts = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        if value is not None and not isinstance(value, str):
            raise UserError(
                f"column {column!r} is {shown(value)}, not text",
                where=place,
                do="name the column with the text",
            )
        readers.check_text(value or "", place)
        texts.append(value or "")
    return texts
