"""A removal list, as commands for people take it: of this program, or plain ids.

A list of this program stands alone: its metadata say what its ids are, and it has the digest of
every text that goes. Nothing about it is taken from files that happen to lie around it; what is
read from its run has to have the digest that the list recorded.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io import digests, paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_metadata, read_table
from mamushi.rooms import additions
from mamushi.selection.removals import digest_of_ids
from mamushi.unlearning.removal import OURS, columns_of, read_ids
from mamushi_curate.matching import RowRemoval
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import text_columns
from mamushi_curate.tables.lines import Dialect


@dataclass(frozen=True)
class ListedTexts:
    """What a list says, and what is read of its run."""

    path: Path
    ids: list[str]
    copies: Mapping[str, list[str]] = field(default_factory=dict)
    """Those that go with a listed id."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The digest of each text that goes, by id, as far as it is known."""
    rows: Mapping[str, Any] | None = None
    """What the ids are, as the stage `examples` says it; None of plain ids."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """Digests of what it was made from: `examples`, `duplicates`, and the ranking."""
    place: Mapping[str, str] | None = None
    """Its wildcards and the folder of results, where it lies in a run."""
    manifest: Mapping[str, Any] | None = None

    @property
    def copied(self) -> set[str]:
        """Return the ids of all copies."""
        return {copy for copies in self.copies.values() for copy in copies}

    @property
    def all(self) -> set[str]:
        """Return the ids of texts with their copies."""
        return {*self.ids} | self.copied

    def of_run(self, name: str) -> Path:
        """Return a table of its run: `examples` or `duplicates`. Raises ``UserError`` for a list
        away from its run, and for a file that is not the one that it was made from."""
        pattern = {"examples": paths.EXAMPLES, "duplicates": paths.DUPLICATES}[name]
        path = None if self.place is None else paths.under(pattern=pattern, **self.place)
        if path is None or not path.is_file():
            do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
            problem = "no run lies around it, whose texts could be searched"
            raise UserError(problem, where=self.path, do=do)
        if digests.of(path) != self.made_from.get(name):
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {self.path}", where=path, do=do)
        return path

    def duplicates(self) -> list[dict[str, Any]]:
        """Return the rows of its table `duplicates`. Raises ``UserError`` as ``of_run``."""
        return list(read_table(self.of_run("duplicates"), schemas.DUPLICATES).to_pylist())

    def column(self, args: argparse.Namespace, columns: Sequence[str], data: Path) -> str | None:
        """Return which of the ``columns`` of ``data`` has the ids; None: the numbers of its rows.

        It is the one that was asked for, or that of the dataset; of plain ids ``id``. Never are ids
        taken for numbers of rows where nobody said so. Raises ``UserError`` where there is no such
        column.
        """
        ranked = "id" if self.rows is None else self.rows["column"]
        if args.rows or (args.id is None and ranked is None):
            return None
        do = "name the column with the ids in --id, or say --rows if they are numbers of rows"
        return _existing(str(ranked if args.id is None else args.id), columns, data, do)

    def text(self, args: argparse.Namespace, columns: Sequence[str], data: Path) -> str | None:
        """Return which of the ``columns`` of ``data`` has the texts that are compared with those
        that were ranked; None where they cannot be, or need not. Raises ``UserError`` where there
        is no such column."""
        ranked = None if self.rows is None else self.rows["text"]
        if args.text is not None or ranked is None or args.changed_texts:
            return args.text and str(args.text)
        do = "name the texts that were ranked in --text, or say --changed-texts"
        for name in text_columns(ranked):
            _existing(name, columns, data, do)
        return str(ranked)

    def dialect(self, args: argparse.Namespace) -> Dialect:
        """Return how cells stand in CSV and TSV: as asked for, or as read for the ranking."""
        asked = {name: getattr(args, name) for name in ("quote", "separator")}
        return Dialect.of({**(self.rows or {}), **{k: v for k, v in asked.items() if v}})

    def removal(self, args: argparse.Namespace, data: Path) -> RowRemoval:
        """Return which rows of ``data`` go by the options. Raises ``UserError`` as ``column`` and
        ``text``, and where numbers of rows could be those of another table."""
        columns = readers.columns(data, self.dialect(args))
        column, text = self.column(args, columns, data), self.text(args, columns, data)
        if column is None and text is None and not args.rows:
            problem = "the list has the numbers of rows, and their texts are not to be compared"
            do = "say --rows as well if the numbers are those of this table"
            raise UserError(problem, where=data, do=do)
        options = {"changed_texts": args.changed_texts, "missing_ids": args.missing_ids}
        options["part"] = (self.rows or {}).get("part", "whole")
        return self.removing(column, text, **options)

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return the rows that go by their ids in a ``column``, with their texts compared."""
        return RowRemoval(self.all, column, text, texts=self.texts, **options)

    def exported(self) -> list[str]:
        """Return the ids by rank, each with its copies after it."""
        return [listed_id for name in self.ids for listed_id in (name, *self.copies.get(name, []))]

    def receipt(self, removal: RowRemoval) -> dict[str, Any]:
        """Return how many of its ids are there, and which are not."""
        ids = [*self.ids, *sorted(self.copied)]
        return {
            "listed": len(self.ids),
            "copies": len(self.copied),
            "found": len(removal.seen_ids),
            "copies_found": sum(name in removal.seen_ids for name in self.copied),
            "not_found": [name for name in ids if name not in removal.seen_ids],
        }

    def report(self, removal: RowRemoval) -> list[str]:
        """Return what became of its rows, in lines to print."""
        copies = f"{self.receipt(removal)['copies_found']:,} of them as copies"
        return [f"{removal.removed:,} of {removal.read:,} rows removed, {copies}"]


def _existing(name: str, columns: Sequence[str], data: Path, do: str) -> str:
    """Return the name of a column. Raises ``UserError`` where it is not there."""
    if columns and name not in columns:
        problem = f"no column {name!r}; it has {', '.join(map(repr, columns))}"
        raise UserError(problem, where=data, do=do)
    return name


def read_list(path: Path) -> ListedTexts:
    """Read a list. Raises ``UserError`` as ``read_ids``, for what is no list, for one that is not
    its manifest's, and for one of an earlier ranking than the one in its run."""
    names = columns_of(path)
    if names is None or not names >= OURS:
        return ListedTexts(path, read_ids(path))
    if path.suffix.lower() not in (".parquet", ".pq"):
        problem = "is a removal list in another format, of which copies would stay"
        raise UserError(problem, where=path, do="give the .parquet that the run has made")
    table, metadata = read_table(path, schemas.REMOVALS), read_metadata(path)
    place = paths.wildcards(paths.REMOVAL, path.absolute())
    ids, copies, text_digests, copy_digests = (
        table[name].to_pylist() for name in ("id", "copies", "text_sha256", "copies_sha256")
    )
    texts = dict(zip(ids, text_digests, strict=True))
    for copied, sums in zip(copies, copy_digests, strict=True):
        texts.update(zip(copied, sums, strict=True))
    listed = ListedTexts(
        path,
        ids,
        copies=dict(zip(ids, copies, strict=True)),
        texts=texts,
        rows=metadata["rows"],
        made_from=metadata.get("provenance", {}).get("inputs", {}),
        place=place,
        manifest=_manifest(path.with_suffix(".json"), ids),
    )
    if place is not None:
        _refuse_earlier(listed)
    for step in additions("removal_list"):
        listed = step(listed)
    return listed


def _refuse_earlier(listed: ListedTexts) -> None:
    from mamushi.evidence.ranking import is_earlier

    names = {name: value for name, value in (listed.place or {}).items() if name != "root"}
    if is_earlier(Path((listed.place or {})["root"]), names, listed.made_from):
        do = "make it again: mamushi list --budget {beta} --selector {selector}".format(**names)
        problem = "is of an earlier ranking than the one that is there"
        raise UserError(problem, where=listed.path, do=do)


def _manifest(path: Path, ids: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the manifest beside a list, None without one. Raises ``UserError`` for a damaged one,
    and for that of another list."""
    if not path.is_file():
        return None
    manifest = read_json(path)
    if manifest.get("ids_sha256") != digest_of_ids(ids):
        do = "make both again with mamushi run removals, or take the other list's manifest away"
        raise UserError("is of another list than the one beside it", where=path, do=do)
    return manifest
