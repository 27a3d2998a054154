"""Whether a quoted cell of CSV or TSV has swallowed rows.

A `"` that opens a cell by chance, as the first character of a sentence does, closes at the next one
lines below, and all rows between become one. Texts with line ends of their own are common, and have
separators in them too, so the lines of such a row are taken for rows only where they have the
columns of the table and look like its rows: as many cells in each, and where the row itself has an
id or a number, one alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
DECIMAL = re.compile(r"-?\d+\.\d+")
_ENDS = re.compile(r"(?:^|\W)\d{1,3}$")
THOUSAND = re.compile(r"\d{3}(?!\d)")
_LONGEST = 80
"""Characters of an id, at most."""
EARLIER, ENOUGH = 200, 8
"""Rows that tell which values a column has, at most and at least."""
NEARLY = 0.9
"""Share of the values of a column that have its form."""


class Earlier:
    """The first rows of a table, which tell what values its columns have."""

    def __init__(self) -> None:
        self.rows: list[Sequence[str]] = []
        self._values: dict[int, set[str]] = {}
        self._forms: dict[int, str] = {}

    def add(self, row: Sequence[str]) -> None:
        if len(self.rows) < EARLIER:
            self.rows.append(row)
            self._values.clear()
            self._forms.clear()

    def values(self, at: int) -> set[str]:
        if at not in self._values:
            self._values[at] = {row[at] for row in self.rows}
        return self._values[at]

    def form(self, at: int) -> str:
        """Return a cell like which nearly all of a column are made, such as a date or a hash; empty
        where they are not, or are plain numbers."""
        if at not in self._forms:
            values, self._forms[at] = self.values(at), ""
            if len(values) >= ENOUGH:
                typical = min(values, key=lambda cell: (not re.search(r"\d", cell), cell))
                alike = sum(_alike(cell, typical) for cell in values)
                if not typical.isdigit() and alike >= NEARLY * len(values):
                    self._forms[at] = typical
        return self._forms[at]


def swallowed(
    lines: Sequence[str], cells: Sequence[str], separator: str, earlier: Earlier
) -> int | None:
    """Return which of the ``lines`` of one row looks like a row of its own, from 0; None where none
    does. ``earlier``: rows before it."""
    n = len(cells)
    if n < 2:
        return None
    counts = [line.count(separator) for line in lines]
    counts[0] = 0
    if max(counts) < n - 1:
        return None
    # A line has as many cells as separators and one more, or less where two quotes are in it.
    wide = [
        at
        for at, count in enumerate(counts)
        if at and (count == n - 1 or (count >= n and lines[at].count('"') > 1))
    ]
    whole = [(at, row) for at in wide if len(row := split_line(lines[at], separator)) == n]
    if not whole:
        return None
    inner = sum(1 for line in lines[1:] if line.strip())
    first, rest = split_line(lines[0], separator), [row for _, row in whole]
    prose = separator == "," and any(map(_prose, [first, *rest]))
    if len(whole) == inner and not prose:
        if len(first) == n and _all_rows([first, *rest], separator, earlier):
            return whole[0][0]
        if _counts_on(cells[0], [row[0] for row in rest]):
            return whole[0][0]
    before = _before(cells)
    for place, row in whole:
        # What stands behind the quote in the last line is the row's own in any case.
        behind = range(len(before) + 1, n if place < len(lines) - 1 else 0)
        if not (n == 2 and prose and _prose(row)) and _like(row, before, behind, earlier):
            return place
    return None


def split_line(line: str, separator: str) -> list[str]:
    """Return the cells of a line by itself: a quote that does not close in it is a character."""
    if line.count('"') < 2:
        return line.rstrip("\r\n").replace('"', "").split(separator)
    return [match.strip('"') for match in _cell(separator).findall(line.rstrip("\r\n"))]


@lru_cache
def _cell(separator: str) -> re.Pattern[str]:
    end = f"(?={re.escape(separator)}|$)"
    cell = f'"(?:[^"]|"")*"{end}|[^{re.escape(separator)}]*{end}'
    return re.compile(f"(?:^|(?<={re.escape(separator)}))(?:{cell})")


def _before(cells: Sequence[str]) -> list[str]:
    """Return the cells of a row in front of that which holds line ends."""
    place = next((at for at, cell in enumerate(cells) if "\n" in cell or "\r" in cell), 0)
    return list(cells[:place])


def _prose(row: Sequence[str]) -> bool:
    """Return whether a comma between cells is one of prose, or of a number of thousands."""
    return any(cell[:1] == " " for cell in row[1:]) or _thousands(row)


def _thousands(row: Sequence[str]) -> bool:
    return any(_ENDS.search(left) and THOUSAND.match(right) for left, right in pairwise(row))


def _all_rows(rows: list[list[str]], separator: str, earlier: Earlier) -> bool:
    """Return whether lines that have as many cells each are rows: hardly a text has so many tabs in
    every line; of commas more must agree."""
    if (
        separator == "\t"
        and all(row[0].strip() for row in rows)
        and (len(rows[0]) > 2 or not any(" " in row[0].strip() for row in rows))
    ):
        return True
    columns = enumerate(zip(*rows, strict=True))
    return any(_one_kind(at, column, earlier) for at, column in columns)


def _one_kind(at: int, column: Sequence[str], earlier: Earlier) -> bool:
    """Return whether the cells of a column are of the few values that it has, or numbers as all
    that it has; where nothing is known of it, short ones of one length."""
    if len(column) > 1 and all(map(DECIMAL.fullmatch, column)):
        return True
    if len(earlier.rows) < ENOUGH:
        short = len({len(cell) for cell in column}) == 1 and len(column) > 1
        return short and all(map(INTEGER.fullmatch, column))
    if form := earlier.form(at):
        return all(_alike(cell, form) for cell in column)
    if _few(at, earlier):
        return earlier.values(at).issuperset(column)
    # Many numbers, as of votes. The last line has that of the row in any case.
    values = [*column, *earlier.values(at)]
    return len(column) > 1 and all(map(INTEGER.fullmatch, values))


def _few(at: int, earlier: Earlier) -> bool:
    """Return whether a column has few values, none of them empty, as that of a label has."""
    values, n = earlier.values(at), len(earlier.rows)
    return n >= ENOUGH and len(values) <= n // 4 and "" not in values


def _like(row: Sequence[str], before: Sequence[str], behind: range, earlier: Earlier) -> bool:
    """Return whether a line has an id like that in front of the text, a cell made like all of its
    column, or two of the values that their columns have."""
    if any((form := earlier.form(at)) and _alike(row[at], form) for at in behind):
        return True
    agreeing = sum(_one_kind(at, [row[at]], earlier) for at in behind)
    for at, cell in enumerate(before):
        if _alike(row[at], cell):
            return True
        if _few(at, earlier):
            agreeing += _one_kind(at, [row[at]], earlier)
        else:
            agreeing += bool(INTEGER.fullmatch(row[at]) and INTEGER.fullmatch(cell))
    return agreeing > 1


def _alike(left: str, right: str) -> bool:
    """Return whether two cells are ids of one making: with a letter or mark and a digit, and of the
    same pattern, or long and of one length."""
    if not (0 < len(left) <= _LONGEST and 0 < len(right) <= _LONGEST):
        return False
    if any(cell.isspace() for cell in left + right):
        return False
    if not (re.search(r"\d", left) and re.search(r"\d", right)):
        return False
    if left.isdigit() and right.isdigit():
        return len(left) == len(right) and len(left) > 4
    if _NUMBER.fullmatch(left) or _NUMBER.fullmatch(right):
        return False
    return _pattern(left) == _pattern(right) or (
        len(left) == len(right) > 7 and _marks(left) == _marks(right)
    )


def _pattern(cell: str) -> str:
    return re.sub(r"\d+", "0", cell)


def _marks(cell: str) -> list[tuple[int, str]]:
    return [(at, mark) for at, mark in enumerate(cell) if not mark.isalnum()]


def _counts_on(start: str, following: Sequence[str]) -> bool:
    """Return whether the first cells of the lines count on from that of the row."""
    if not (start.isdigit() and len(start) < 19 and start.isascii()):
        return False
    return list(following) == [str(int(start) + step) for step in range(1, len(following) + 1)]
