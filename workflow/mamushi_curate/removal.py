"""A removal list, and which rows of a table are those of it.

A list of this program stands alone: it says what its ids are, with the digest of every text that
goes, and what is read from its run has to have the digest that it recorded. Another list is ids
alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.errors import UserError
from mamushi.io import digests, paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import examples_file, read_metadata, read_table
from mamushi.registry import additions
from mamushi.selection.removals import digest_of_ids
from mamushi.unlearning.removal import OURS, read_list
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.lines import USUAL, Dialect, Record, check_columns

Ranked = Mapping[tuple[int, int], str]
"""What was ranked of a text: the digest of its characters from one place to another."""
WHOLE = (0, sys.maxsize)


class Verdict(NamedTuple):
    """What becomes of a row: whether it stays, and what it has then in some of its cells."""

    stays: bool = True
    cells: Mapping[str, str] = {}


STAYS, GOES = Verdict(), Verdict(stays=False)
Verdicts = Iterable[tuple[Record, Verdict]]
"""The records of a file, each with its verdict."""


@dataclass
class Counts:
    """What became of the rows of a table, and of the ids of the list."""

    read_rows: int = 0
    removed_rows: int = 0
    cut_rows: int = 0
    cut_characters: int = 0
    seen_ids: set[str] = field(default_factory=set)
    first: str | None = None
    """The first id of the table."""
    twice: str | None = None
    """The first of the ids that several rows have."""
    compared: int = 0
    changed: int = 0
    """Of the texts that go, those that were compared with what was ranked, and differ."""


@dataclass(frozen=True)
class Removal:
    """A list, and by what it knows the rows of a table."""

    ids: Mapping[str, Ranked]
    """Of the rows that go, each with what was ranked of its text, as far as it is known."""
    copies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The listed ids in their order, each with those that go with it."""
    path: Path = Path()
    source: Mapping[str, Any] | None = None
    """What the ids are, as the stage `examples` says it; None of plain ids."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """Digests of what it was made from: `examples`, `duplicates`, and the ranking."""
    run: Mapping[str, str] | None = None
    """Its wildcards and the folder of results, where it lies in a run."""
    manifest: Mapping[str, Any] | None = None
    cuts_windows: bool = False
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
    counts: Counts = field(default_factory=Counts)

    def of_run(self, name: str) -> Path:
        """Return a table of its run: `examples` or `duplicates`. Raises ``UserError`` for a list
        away from its run, and for a file that is not the one that it was made from."""
        digest, path = self.made_from.get(name), None
        if self.run is not None:
            path = paths.under(pattern=paths.DUPLICATES, **self.run)
            if name == "examples":
                path = examples_file(digest=digest, **self.run)
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

    def ids_with_copies(self) -> list[str]:
        """Return the ids by rank, each with its copies after it. Raises ``UserError`` for windows
        to cut, which are no texts."""
        if self.cuts_windows:
            raise UserError("lists windows to cut, and no texts", where=self.path)
        return [name for listed, copies in self.copies.items() for name in (listed, *copies)]

    def with_options(self, options: Any, data: Path) -> Removal:
        """Return the list with columns set for the table ``data``: as options of `apply` name them,
        or as it was read for the ranking; plain ids are in ``id``. Raises ``UserError`` where a
        column is missing, and where row numbers alone may be of another table."""
        source = self.source or {"column": "id", "text": None}
        # No windows are cut unseen.
        changed_texts = options.changed_texts and not self.cuts_windows
        asked = {name: getattr(options, name) for name in ("quote", "separator")}
        removal = replace(
            self,
            column=options.id or (None if options.rows else source["column"]),
            text=options.text or (None if changed_texts else source["text"]),
            part=source.get("part", "whole"),
            dialect=Dialect.of({**source, **{k: v for k, v in asked.items() if v}}),
            changed_texts=changed_texts,
            missing_ids=options.missing_ids,
        )
        if columns := readers.columns(data, removal.dialect):
            do = "name ids in --id and texts in --text, or say --rows if ids are numbers of rows, "
            do += "--changed-texts if texts are others now"
            check_columns(data, columns, removal.columns, do)
        if removal.column is None and removal.text is None and not options.rows:
            problem = "the list has the numbers of rows, and their texts are not to be compared"
            do = "say --rows as well if the numbers are those of this table"
            raise UserError(problem, where=data, do=do)
        return removal

    def judge(self, records: Iterable[Record]) -> Verdicts:
        """Iterate over the records of a file, each with its verdict: what is no row stays. Raises
        ``UserError`` for a text that is not the one that was ranked."""
        for record in records:
            is_row = record.cells is not None and not record.is_header
            yield record, self.verdict(record) if is_row else STAYS

    def verdict(self, record: Record) -> Verdict:
        """Return what becomes of the next row. Raises ``UserError`` as ``judge``."""
        cells, place, counts = record.cells or {}, record.place, self.counts
        counts.read_rows += 1
        cell = counts.read_rows if self.column is None else cells.get(self.column)
        name = readers.name_at(cell, str(self.column), place)
        counts.first = counts.first or name
        name = name if name in self.ids else self.spellings.get(name or "")
        if name is None:
            return STAYS
        counts.twice = counts.twice or (name if name in counts.seen_ids else None)
        counts.seen_ids.add(name)
        if self.conversations and (ranked := self.ids[name]):
            text = self.conversations.read(cells, place).text
            is_same = all(digests.text_sha(text[slice(*at)]) == sha for at, sha in ranked.items())
            counts.compared += 1
            counts.changed += not is_same
            if not (is_same or self.changed_texts):
                problem = f"the text of {name!r} is not the one that was ranked"
                do = "give the table that was ranked, or rank again"
                do += "" if self.cuts_windows else "; --changed-texts goes by the ids alone"
                raise UserError(problem, where=place, do=do)
            if self.cuts_windows and self.text:
                listed = {at for window in ranked for at in range(*window)}
                counts.cut_characters += len(listed)
                text = "".join(c for at, c in enumerate(cells[self.text] or "") if at not in listed)
                if text.strip():
                    counts.cut_rows += 1
                    return Verdict(cells={self.text: text})
        counts.removed_rows += 1
        return GOES

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Return ids of a list that nobody ranked as numbers and booleans of a table are called, by
        what they are there: quoted, ``1.0`` or ``True``."""
        plain = {} if self.source else {name: name.strip("\"'") for name in self.ids}
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
        counts = self.counts
        where = "number of a row" if self.column is None else f"column {self.column!r}"
        where = f"({where}, as {counts.first!r})"
        missing = [name for name in self.ids if name not in counts.seen_ids]
        if not counts.seen_ids:
            problem = f"none of its {len(self.ids)} ids, as {min(self.ids)!r}, is there {where}"
            do = "name the column with --id, or give the table that was ranked"
        elif counts.twice is not None:
            problem = f"several rows have the id {counts.twice!r} of the list"
            do = "give every row an id of its own, or name their column with --id"
        elif missing and not self.missing_ids:
            problem = f"{len(missing):,} of its {len(self.ids):,} ids are not there {where}: "
            problem += repr(min(missing))
            do = "give the whole table that was ranked, or say --missing-ids if they are gone"
        elif counts.removed_rows == counts.read_rows:
            problem = f"all of its {counts.read_rows:,} rows are listed, and nothing would be left"
            do = "give a list of some of them"
        else:
            return
        raise UserError(problem, where=data, do=do)

    def count_ids(self) -> dict[str, Any]:
        """Return how many of its ids are there, and which are not: of windows to cut, those of
        their documents."""
        listed, copies = [*self.copies], [*chain(*self.copies.values())]
        if self.cuts_windows:
            listed, copies = ([name.rpartition("#")[0] for name in ids] for ids in (listed, copies))
        missing = [name for name in (*listed, *sorted(copies)) if name not in self.counts.seen_ids]
        return {
            "listed": len(listed),
            "copies": len(copies),
            "found": len(self.counts.seen_ids),
            "copies_found": sum(name in self.counts.seen_ids for name in copies),
            "not_found": [*dict.fromkeys(missing)],
        }


def read_removal(path: Path) -> Removal:
    """Read a list. Raises ``UserError`` as ``read_list``, for one that is not its manifest's, and
    for one of an earlier ranking than the one in its run."""
    from mamushi.evidence.ranking import is_earlier

    listed = read_list(path)
    if not OURS.issubset(listed.column_names):
        plain = listed["id"].to_pylist()
        return Removal({name: {} for name in plain}, dict.fromkeys(plain, ()), path)
    metadata, columns = read_metadata(path), listed.to_pydict()
    run = paths.wildcards(paths.REMOVAL, path.absolute())
    made_from = metadata.get("provenance", {}).get("inputs", {})
    if run is not None and is_earlier(run, made_from):
        do = "make it again: mamushi list --budget {beta} --selector {selector}".format(**run)
        problem = "is of an earlier ranking than the one that is there"
        raise UserError(problem, where=path, do=do)
    manifest = read_json(beside) if (beside := path.with_suffix(".json")).is_file() else None
    if manifest is not None and manifest.get("ids_sha256") != digest_of_ids(columns["id"]):
        do = "make both again with mamushi run removals, or take the other list's manifest away"
        raise UserError("is of another list than the one beside it", where=beside, do=do)
    names = chain(columns["id"], *columns["copies"])
    sums = chain(columns["text_sha256"], *columns["copies_sha256"])
    ids = {name: {WHOLE: digest} for name, digest in zip(names, sums, strict=True)}
    copies = dict(zip(columns["id"], columns["copies"], strict=True))
    removal = Removal(ids, copies, path, metadata["rows"], made_from, run, manifest)
    for step in additions("removal_list"):
        removal = step(removal)
    return removal
