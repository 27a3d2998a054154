"""What each row of a table is: its text, id, domain, section and stratum.

Both the loader of tables and the look at their first rows come here, so that what a dry run says of
a table is what the job would say. Nothing heavy is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from mamushi.artifacts.domains import SECTIONS
from mamushi.data.expression import parse
from mamushi.data.readers import Table, check_text, name_of
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


def needed(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns that the settings of the loader ``table`` name. Raises ``UserError`` for a
    bad expression."""
    found = [settings["text"], settings["id"], settings["section"], settings["stratum"]]
    found += settings["labels"]
    for mark in (settings["forget"], settings["retain"] or {}):
        found += parse(mark["where"]).names if "where" in mark else [mark.get("column")]
    return list(dict.fromkeys(name for name in found if name is not None))


def rows(table: Table, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return columns of ``Raw`` by the settings of the loader ``table``: ``ids``, ``texts``,
    ``forget`` (None where a row is of neither domain), ``section`` and ``stratum``.

    Raises ``UserError`` for a text that is not text, a missing or NaN id, stratum or mark, an
    unknown section, a value of a domain that no row has, and a row of both domains.
    """
    n = len(table.places)
    identifier, section, stratum = (settings[name] for name in ("id", "section", "stratum"))
    return {
        "ids": [str(i + 1) for i in range(n)] if identifier is None else _names(table, identifier),
        "texts": _texts(table, settings["text"]),
        "forget": _domains(table, settings["forget"], settings["retain"]),
        "section": _sections(table, section, settings["section_values"]) if section else [None] * n,
        "stratum": _names(table, stratum) if stratum else [""] * n,
    }


def _domains(
    table: Table, forget: Mapping[str, Any], retain: Mapping[str, Any] | None
) -> list[bool | None]:
    """Return of each row whether it is of the forget domain. Where both domains are marked, a row
    may be of neither: then None, and an empty cell marks nothing."""
    if retain is None:
        return [*_marked(table, forget, filled=True)]
    marks = (_marked(table, mark, filled=False) for mark in (forget, retain))
    domains: list[bool | None] = []
    for place, unwanted, wanted in zip(table.places, *marks, strict=True):
        if unwanted and wanted:
            what = "of the forget and of the retain domain"
            do = "make `forget` and `retain` exclude each other"
            raise UserError(what, where=place, do=do)
        domains.append(unwanted if unwanted or wanted else None)
    return domains


def _marked(table: Table, mark: Mapping[str, Any], *, filled: bool) -> list[bool]:
    """Return which rows are of a domain. ``filled``: an empty cell is a mistake."""
    if "where" in mark:
        return _where(table, mark["where"], None if filled else False)
    return _among(table, mark["column"], mark["values"], filled)


def _where(table: Table, text: str, empty: bool | None) -> list[bool]:
    """Return of which rows an expression is true; ``empty`` where that hangs on an empty cell.

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


def _types(table: Table, column: list[Any]) -> list[list[Any]]:
    """Return a column as it is typed, and as it may yet be."""
    if table.typed:
        return [column]
    inferred = infer(column)
    return [inferred] if table.whole or inferred == column else [inferred, column]


def infer(column: Sequence[str]) -> list[Any]:
    """Return text cells of a CSV column as numbers or booleans, where all that are not empty can
    be; empty cells are then None."""
    converters: tuple[Callable[[str], Any], ...] = (_boolean, int, float)
    for convert in converters:
        try:
            return [convert(cell) if cell.strip() else None for cell in column]
        except (KeyError, ValueError):
            continue
    return list(column)


def _boolean(cell: str) -> bool:
    return {"true": True, "false": False}[cell.strip().lower()]


def spelled(cell: str) -> str:
    """Return the name of the number or boolean that a text cell spells, else the cell.

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


def _names(table: Table, column: str, filled: bool = True) -> list[str]:
    """Return each cell's name, empty where it has none. Raises ``UserError`` at the first of these
    if they are to be ``filled``, and at one that holds several values."""
    names = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        if isinstance(value, list | dict | bytes):
            what = f"column {column!r} is {shown(value)}, not one value"
            raise UserError(what, where=place, do="name a column of numbers or text")
        name = name_of(value)
        if name is None and filled:
            what = f"column {column!r} is {value!r}"
            raise UserError(what, where=place, do="give every row a value")
        check_text(name or "", place)
        names.append(name or "")
    return names


def _among(table: Table, column: str, values: Sequence[Any], filled: bool) -> list[bool]:
    """Return which cells have one of ``values``. A value that never occurs is taken for a slip, and
    with ``filled`` so is an empty cell.

    In a table without types, cells count as what they spell; a value that is given as text is first
    looked for as it stands, so that ``"1.1"`` and ``"1.10"`` may be two versions.
    """
    cells = _names(table, column, filled)
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
            do = f"its values are {', '.join(sorted(found)[:SHOWN])}"
            do += ", ..." if len(found) > SHOWN else ""
            where = f"{table.file}, column {column!r}"
            raise UserError(f"no row has the value {name!r}", where=where, do=do)
    return [
        cell in as_it_stands or name in by_name for cell, name in zip(cells, names, strict=True)
    ]


def shown(value: Any) -> str:
    """Return a cell for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _sections(table: Table, column: str, mapping: Mapping[str, str]) -> list[str | None]:
    """Return the ready-made section of each row, None where the cell is empty."""
    known: dict[str | None, str | None] = {None: None, **dict(zip(SECTIONS, SECTIONS, strict=True))}
    known.update(mapping)
    sections = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        name = name_of(value)
        if name not in known and name is not None and not table.typed:
            name = spelled(name)
        if name not in known:
            do = f"known are {', '.join(filter(None, known))}; others go into section_values"
            raise UserError(f"section {name!r} in column {column!r}", where=place, do=do)
        sections.append(known[name])
    return sections


def _texts(table: Table, column: str) -> list[str]:
    """Return the texts; null counts as empty."""
    texts = []
    for value, place in zip(table.columns[column], table.places, strict=True):
        if value is not None and not isinstance(value, str):
            what = f"column {column!r} is {shown(value)}, not text"
            raise UserError(what, where=place, do="name the column with the text")
        check_text(value or "", place)
        texts.append(value or "")
    return texts
