"""Which rows of a table are those of a removal list: by their ids, and by the texts under them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError
from mamushi.io.digests import of_text
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.lines import shown_name

if TYPE_CHECKING:
    import pyarrow as pa

STAYS = set[int]()
"""What is cut out of a row that stays as it is: one set for all of them."""


@dataclass
class RowRemoval:
    """Which rows go, or what of their texts, and what became of them."""

    ids: Collection[str]
    column: str | None
    """The column with the id; None: the number of the row, from 1."""
    text: str | None = None
    """The columns with the text, as a setting; None where texts are not compared."""
    part: str = "whole"
    """What of a conversation was ranked."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The digest of each text that was ranked, by id, as far as it is known."""
    changed_texts: bool = False
    """Whether a row goes also where its text is another one now."""
    missing_ids: bool = False
    """Whether ids may be missing."""
    read: int = 0
    removed: int = 0
    unnamed: int = 0
    """Rows without an id, which stay."""
    seen_ids: set[str] = field(default_factory=set)
    first: str | None = None
    """The first id of the table."""
    twice: str | None = None
    """The first of the ids that several rows have."""
    compared: int = 0
    changed: int = 0
    """Of the texts that go, those that were compared with what was ranked, and differ."""
    needs_same = False
    """Whether a text has to be the one that was ranked, also where ``changed_texts`` may go."""

    def of(self, cells: Mapping[str, Any], place: object) -> set[int] | None:
        """Return the places of characters that are cut out of the text of the next row, none of one
        that stays as it is; None where the row goes. Raises ``UserError`` for an id that is no one
        value, and for a text that is not the one that was ranked."""
        self.read += 1
        cell = self.read if self.column is None else cells.get(self.column)
        name = readers.name_at(cell, str(self.column), place)
        self.unnamed += name is None
        self.first = self.first or name
        name = name if name in self.ids else self.spellings.get(name or "")
        if name is None:
            return STAYS
        self.removed += 1
        self.twice = self.twice or (name if name in self.seen_ids else None)
        self.seen_ids.add(name)
        if self.conversations is None:
            return None
        text = self.conversations.read(cells, place).text
        is_same = self.is_same(name, text)
        self.compared += is_same is not None
        self.changed += is_same is False
        if is_same is False and (self.needs_same or not self.changed_texts):
            problem = f"the text of {name!r} is not the one that was ranked"
            do = "give the table that was ranked, or rank again"
            do += "" if self.needs_same else "; --changed-texts goes by the ids alone"
            raise UserError(problem, where=place, do=do)
        return self.cuts(name, text)

    def of_tables(
        self, tables: Iterable[pa.Table], path: Path
    ) -> Iterator[tuple[pa.BooleanArray, dict[int, set[int]]]]:
        """Iterate over which rows of each Arrow table of a file stay, and what is cut out of them;
        the tables have its ``columns``."""
        import pyarrow as pa

        from mamushi.data.cells import Cells

        file, numbers = shown_name(path), count(1)
        for table in tables:
            cells = [[*Cells(column)] for column in table.columns]
            places = [
                self.of(dict(zip(table.column_names, row, strict=True)), place)
                for row in (zip(*cells, strict=True) if cells else [()] * len(table))
                for place in [f"{file}, row {next(numbers)}"]
            ]
            stays = pa.array([gone is not None for gone in places], pa.bool_())
            yield stays, {row: gone for row, gone in enumerate(places) if gone}

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Return ids of a list that nobody ranked as numbers and booleans of a table are called, by
        what they are there: quoted, ``1.0`` or ``True``."""
        plain = {} if self.texts else {name: name.strip("\"'") for name in self.ids}
        words = {"True": "true", "False": "false"}
        called = {words.get(text, text.removesuffix(".0")): name for name, text in plain.items()}
        return {text: name for text, name in called.items() if text != name}

    def cuts(self, name: str, text: str) -> set[int] | None:
        """Return the places of characters that are cut out of a listed text; None: the row goes."""
        return None

    def is_same(self, name: str, text: str) -> bool | None:
        """Tell whether a text is the one that was ranked; None where that is not known."""
        return of_text(text) == self.texts[name] if name in self.texts else None

    def counts(self) -> dict[str, Any]:
        """Return what was counted beside the rows, for the receipt."""
        return {}

    @cached_property
    def conversations(self) -> Conversations | None:
        """Return what reads the texts; None where they are not compared."""
        return None if self.text is None else Conversations(self.text, self.part)

    @property
    def columns(self) -> list[str]:
        """Return the columns that are read for it."""
        texts = self.conversations.columns if self.conversations else []
        return [name for name in (self.column, *texts) if name is not None]

    def check(self, data: object) -> None:
        """Raise ``UserError`` where ids of the list are not there, one is there in several rows, or
        no row would be left: it is a list of another table."""
        where = "number of a row" if self.column is None else f"column {self.column!r}"
        where = f"({where}, as {self.first!r})"
        missing = [name for name in self.ids if name not in self.seen_ids]
        if not self.seen_ids:
            problem = f"none of its {len(self.ids)} ids, as {min(self.ids)!r}, is there {where}"
            do = "name the column with --id, or give the table that was ranked"
        elif self.twice is not None:
            problem = f"several rows have the id {self.twice!r} of the list"
            do = "give every row an id of its own, or name their column with --id"
        elif missing and not self.missing_ids:
            problem = f"{len(missing):,} of its {len(self.ids):,} ids are not there {where}: "
            problem += repr(min(missing))
            do = "give the whole table that was ranked, or say --missing-ids if they are gone"
        elif self.removed == self.read:
            problem = f"all of its {self.read:,} rows are listed, and nothing would be left"
            do = "give a list of some of them"
        else:
            return
        raise UserError(problem, where=data, do=do)
