"""A removal list, and which rows of a table are those of it.

A list of this program stands alone: it says what its ids are, with the digest of every text that
goes, and what is read from its run has to have the digest that it recorded. Another list is ids
alone.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError
from mamushi.io import digests, paths, schemas, tabular
from mamushi.io.files import read_json
from mamushi.io.tables import examples_file, read_metadata, read_table
from mamushi.registry import additions
from mamushi.selection.removals import digest_of_ids
from mamushi.unlearning.removal import OURS, columns_of, read_ids
from mamushi_curate import cutting
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.lines import USUAL, Dialect, check_columns, records, shown_name

if TYPE_CHECKING:
    import pyarrow as pa

Ranked = Mapping[tuple[int, int], str]
"""What was ranked of a text: the digest of its characters from one place to another."""
WHOLE = (0, sys.maxsize)
ALL = range(sys.maxsize)
"""Places of the characters of a text whose row goes."""


@dataclass
class Removal:
    """A list, which rows of a table go by it, or what of their texts, and what became of them."""

    ids: Mapping[str, Ranked]
    """Of the rows that go, each with what was ranked of its text, as far as it is known."""
    copies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The listed ids in their order, each with those that go with it."""
    path: Path = Path()
    rows: Mapping[str, Any] | None = None
    """What the ids are, as the stage `examples` says it; None of plain ids."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """Digests of what it was made from: `examples`, `duplicates`, and the ranking."""
    place: Mapping[str, str] | None = None
    """Its wildcards and the folder of results, where it lies in a run."""
    manifest: Mapping[str, Any] | None = None
    cut: bool = False
    """Whether its ids are windows, as ``DOCUMENT#0-9``, which are cut out of texts; their rows stay
    unless nothing would be left."""
    column: str | None = "id"
    """The column of the table with the id; None: the number of the row, from 1."""
    text: str | None = None
    """The columns with the text, as a setting; None where texts are not compared."""
    part: str = "whole"
    dialect: Dialect = USUAL
    changed_texts: bool = False
    """Whether a row goes also where its text is another one now."""
    missing_ids: bool = False
    read_rows: int = 0
    removed_rows: int = 0
    seen_ids: set[str] = field(default_factory=set)
    first: str | None = None
    """The first id of the table."""
    twice: str | None = None
    """The first of the ids that several rows have."""
    compared: int = 0
    changed: int = 0
    """Of the texts that go, those that were compared with what was ranked, and differ."""
    cut_rows: int = 0
    cut_characters: int = 0

    def of_run(self, name: str) -> Path:
        """Return a table of its run: `examples` or `duplicates`. Raises ``UserError`` for a list
        away from its run, and for a file that is not the one that it was made from."""
        digest, path = self.made_from.get(name), None
        if self.place is not None:
            path = paths.under(pattern=paths.DUPLICATES, **self.place)
            if name == "examples":
                path = examples_file(digest=digest, **self.place)
        if path is None or not path.is_file():
            do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
            problem = "no run lies around it, whose texts could be searched"
            raise UserError(problem, where=self.path, do=do)
        if digests.of(path) != digest:
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {self.path}", where=path, do=do)
        return path

    def duplicates(self) -> list[dict[str, Any]]:
        """Return the rows of its table `duplicates`. Raises ``UserError`` as ``of_run``."""
        return list(read_table(self.of_run("duplicates"), schemas.DUPLICATES).to_pylist())

    def exported(self) -> list[str]:
        """Return the ids by rank, each with its copies after it. Raises ``UserError`` for windows
        to cut, which are no texts."""
        if self.cut:
            raise UserError("lists windows to cut, and no texts", where=self.path)
        return [name for listed, copies in self.copies.items() for name in (listed, *copies)]

    def set_options(self, options: Any, data: Path) -> None:
        """Go by the options of `apply` through ``data``: by the column that was asked for or
        ranked, of plain ids ``id``, with cells as asked for or read for the ranking. Raises
        ``UserError`` where a column is not there, and where numbers of rows could be those of
        another table."""
        rows = self.rows or {"column": "id", "text": None}
        # No windows are cut unseen.
        self.changed_texts = options.changed_texts and not self.cut
        self.missing_ids = options.missing_ids
        self.column = options.id or (None if options.rows else rows["column"])
        self.text = options.text or (None if self.changed_texts else rows["text"])
        self.part = rows.get("part", "whole")
        asked = {name: getattr(options, name) for name in ("quote", "separator")}
        self.dialect = Dialect.of({**rows, **{k: v for k, v in asked.items() if v}})
        if columns := readers.columns(data, self.dialect):
            do = "name ids in --id and texts in --text, or say --rows if ids are numbers of rows, "
            do += "--changed-texts if texts are others now"
            check_columns(data, columns, self.columns, do)
        if self.column is None and self.text is None and not options.rows:
            problem = "the list has the numbers of rows, and their texts are not to be compared"
            do = "say --rows as well if the numbers are those of this table"
            raise UserError(problem, where=data, do=do)

    def removed(self, cells: Mapping[str, Any], place: object) -> Collection[int]:
        """Return the places of the characters that go from the text of the next row: none of one
        that stays as it is, ``ALL`` of one that goes. Raises ``UserError`` for another text."""
        self.read_rows += 1
        cell = self.read_rows if self.column is None else cells.get(self.column)
        name = readers.name_at(cell, str(self.column), place)
        self.first = self.first or name
        name = name if name in self.ids else self.spellings.get(name or "")
        if name is None:
            return ()
        self.twice = self.twice or (name if name in self.seen_ids else None)
        self.seen_ids.add(name)
        if self.conversations and (ranked := self.ids[name]):
            text = self.conversations.read(cells, place).text
            is_same = all(digests.text_sha(text[slice(*at)]) == sha for at, sha in ranked.items())
            self.compared += 1
            self.changed += not is_same
            if not (is_same or self.changed_texts):
                problem = f"the text of {name!r} is not the one that was ranked"
                do = "give the table that was ranked, or rank again"
                do += "" if self.cut else "; --changed-texts goes by the ids alone"
                raise UserError(problem, where=place, do=do)
            if self.cut:
                places = {at for span in ranked for at in range(*span)}
                self.cut_characters += len(places)
                if cutting.without_characters(text, places).strip():
                    self.cut_rows += 1
                    return places
        self.removed_rows += 1
        return ALL

    def remaining_lines(self, path: Path, read: dict[str, str]) -> Iterator[bytes]:
        """Iterate over what remains of the records of a file; ``read`` is that of ``records``."""
        form, dialect, header = tabular.format_of(path) or "", self.dialect.at(path), b""
        source = records(path, self.columns, strict=False, dialect=dialect, digests=read)
        is_first = form == "json"
        for raw, cells, place, is_header in source:
            removed = () if cells is None or is_header else self.removed(cells, place)
            header = raw if is_header else header
            if removed is ALL:
                continue
            if removed:
                raw = cutting.cut_line(raw, removed, form, header, dialect, self.text or "")
            if is_first and cells is not None:
                # In an array each has a comma before it, but for the first that remains.
                raw, is_first = raw.removeprefix(b","), False
            yield raw

    def decide_rows(
        self, tables: Iterable[pa.Table], path: Path
    ) -> Iterator[tuple[pa.BooleanArray, dict[int, Collection[int]]]]:
        """Iterate over which rows of each Arrow table of a file remain, and what is cut out of
        them; the tables have its ``columns``."""
        import pyarrow as pa

        file, numbers = shown_name(path), count(1)
        for table in tables:
            removed = [self.removed(row, at) for at, row in readers.rows_of(table, file, numbers)]
            remaining = pa.array([places is not ALL for places in removed], pa.bool_())
            yield remaining, {row: cut for row, cut in enumerate(removed) if cut and cut is not ALL}

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Return ids of a list that nobody ranked as numbers and booleans of a table are called, by
        what they are there: quoted, ``1.0`` or ``True``."""
        plain = {} if self.rows else {name: name.strip("\"'") for name in self.ids}
        words = {"True": "true", "False": "false"}
        called = {words.get(text, text.removesuffix(".0")): name for name, text in plain.items()}
        return {text: name for text, name in called.items() if text != name}

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
        elif self.removed_rows == self.read_rows:
            problem = f"all of its {self.read_rows:,} rows are listed, and nothing would be left"
            do = "give a list of some of them"
        else:
            return
        raise UserError(problem, where=data, do=do)

    def counts(self) -> dict[str, Any]:
        """Return how many of its ids are there, and which are not: of windows to cut, those of
        their documents."""
        listed, copies = [*self.copies], [*chain(*self.copies.values())]
        if self.cut:
            listed, copies = ([name.rpartition("#")[0] for name in ids] for ids in (listed, copies))
        missing = [name for name in (*listed, *sorted(copies)) if name not in self.seen_ids]
        return {
            "listed": len(listed),
            "copies": len(copies),
            "found": len(self.seen_ids),
            "copies_found": sum(name in self.seen_ids for name in copies),
            "not_found": [*dict.fromkeys(missing)],
        }


def read_removal(path: Path) -> Removal:
    """Read a list. Raises ``UserError`` as ``read_ids``, for what is no list, for one that is not
    its manifest's, and for one of an earlier ranking than the one in its run."""
    from mamushi.evidence.ranking import is_earlier

    if not columns_of(path) >= OURS:
        copies = dict.fromkeys(read_ids(path), ())
        return Removal({name: {} for name in copies}, copies, path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        problem = "is a removal list in another format, of which copies would stay"
        raise UserError(problem, where=path, do="give the .parquet that the run has made")
    metadata, columns = read_metadata(path), read_table(path, schemas.REMOVALS).to_pydict()
    place = paths.wildcards(paths.REMOVAL, path.absolute())
    made_from = metadata.get("provenance", {}).get("inputs", {})
    if place is not None:
        names_of_place = {name: value for name, value in place.items() if name != "root"}
        if is_earlier(Path(place["root"]), names_of_place, made_from):
            do = "make it again: mamushi list --budget {beta} --selector {selector}".format(**place)
            problem = "is of an earlier ranking than the one that is there"
            raise UserError(problem, where=path, do=do)
    manifest = read_json(beside) if (beside := path.with_suffix(".json")).is_file() else None
    if manifest is not None and manifest.get("ids_sha256") != digest_of_ids(columns["id"]):
        do = "make both again with mamushi run removals, or take the other list's manifest away"
        raise UserError("is of another list than the one beside it", where=beside, do=do)
    sums = chain(columns["text_sha256"], *columns["copies_sha256"])
    removal = Removal(
        {
            name: {WHOLE: digest}
            for name, digest in zip(chain(columns["id"], *columns["copies"]), sums, strict=True)
        },
        dict(zip(columns["id"], columns["copies"], strict=True)),
        path,
        metadata["rows"],
        made_from,
        place,
        manifest,
    )
    for step in additions("removal_list"):
        removal = step(removal)
    return removal
