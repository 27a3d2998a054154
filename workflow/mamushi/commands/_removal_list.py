"""A removal list, as commands for people take it: of this program, or plain ids.

A list of this program stands alone: its metadata say what its ids are, and it has the digest of
every text that goes. Nothing about it is taken from files that happen to lie around it; what is
read from its run has to have the digest that the list recorded.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mamushi.data import readers
from mamushi.data.matching import Removal
from mamushi.errors import UserError
from mamushi.io import digests, paths, schemas, tabular
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table
from mamushi.selection.removals import digest
from mamushi.unlearning.removal import OURS, columns_of, padded, read_ids
from mamushi_extras.windows.windows import Span, document_of, span_of

Windows = dict[str, dict[Span, str]]
"""By document, the digest of each window by its characters there."""
AN_ID = re.compile(r"(?i:(?:^|[^a-z])(?:id|key|uuid|guid|index|idx|number|nr|no))$|[a-z]I[dD]$")
"""How the name of a column ends that has ids."""
SIDECAR = ".manifest.json"
"""Ending of what lies beside exported ids and says what they are."""


@dataclass(frozen=True)
class RemovalList:
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
    cross_posts: list[str] = field(default_factory=list)
    """Texts of the dataset that stood in both domains: in no list."""
    manifest: Mapping[str, Any] | None = None
    windows: Mapping[str, Mapping[Span, str]] = field(default_factory=dict)
    """Of a list of windows, those of each document that are cut or that it goes for."""
    close: frozenset[str] = frozenset()
    """Those that restate a listed one, and their copies."""
    padded: frozenset[str] = frozenset()
    """Lines of plain text that have white space around an id."""

    @property
    def divided(self) -> Mapping[str, Any]:
        """Return how documents were divided into windows; nothing where they were not."""
        return (self.rows or {}).get("windows") or {}

    @property
    def cuts(self) -> bool:
        """Return whether windows are cut out of their documents."""
        return self.divided.get("action") == "cut"

    @property
    def whole(self) -> bool:
        """Return whether it is of windows whose documents go."""
        return self.divided.get("action") == "remove"

    @property
    def labelled(self) -> bool:
        """Return whether it is of windows whose documents go since they have the label."""
        return self.whole and bool(self.divided["labelled"])

    @property
    def copied(self) -> set[str]:
        """Return the ids of all copies."""
        return {copy for copies in self.copies.values() for copy in copies}

    @property
    def all(self) -> set[str]:
        """Return the ids of texts with their copies. Raises ``UserError`` for windows to cut."""
        if self.cuts:
            do = "cut them with mamushi apply"
            raise UserError("lists windows of texts, and no texts", where=self.path, do=do)
        return {*self.ids} | self.copied

    def of_run(self, name: str) -> Path:
        """Return a table of its run: `examples` or `duplicates`. Raises ``UserError`` for a list
        away from its run, and for a file that is not the one that it was made from."""
        pattern = {"examples": paths.EXAMPLES, "duplicates": paths.DUPLICATES}[name]
        path = None if self.place is None else paths.under(pattern=pattern, **self.place)
        if path is None or not path.is_file():
            do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
            what = "no run lies around it, whose texts could be searched"
            raise UserError(what, where=self.path, do=do)
        if digests.of(path) != self.made_from.get(name):
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {self.path}", where=path, do=do)
        return path

    def card(self) -> Mapping[str, Any]:
        """Return the card of its dataset. Raises ``UserError`` as ``of_run``, and for one that is
        damaged or another dataset's."""
        if self.place is None:
            raise UserError("no run lies around it", where=self.path, do="give --data")
        path = paths.under(pattern=paths.DATA_CARD, **self.place)
        card = read_json(path)
        if card.get("examples") != self.made_from.get("examples"):
            do = "put the card of this run back, rank again, or give --data"
            raise UserError(f"is of another run than {self.path}", where=path, do=do)
        return card

    def all_copies(self) -> tuple[Path, Callable[[str], list[str]]]:
        """Return where the texts of its run are, and what gives the copies of one, also of one that
        stays. Raises ``UserError`` as ``of_run``."""
        examples = self.of_run("examples")
        copies: dict[str, list[str]] = {}
        # Of documents with labels the first window is kept for all windows of a copy.
        of = document_of if self.labelled else str
        for row in self.duplicates():
            copies.setdefault(of(row["kept_id"] or ""), []).append(row["id"])
        return examples, lambda name: copies.get(of(name), [])

    def duplicates(self) -> list[dict[str, Any]]:
        """Return the rows of its table `duplicates`. Raises ``UserError`` as ``of_run``."""
        return list(read_table(self.of_run("duplicates"), schemas.DUPLICATES).to_pylist())

    def column(self, args: argparse.Namespace, data: Path) -> str | None:
        """Return the column of ``data`` with the ids, or None for the numbers of its rows.

        It is the one that was asked for, or that of the dataset; of plain ids ``id``. Never are ids
        taken for numbers of rows where nobody said so. Raises ``UserError`` where there is no such
        column.
        """
        if args.rows and args.id is not None:
            raise UserError("both --id and --rows", do="give one of them")
        if args.rows:
            _check_numbers(self)
            return None
        if args.id is not None:
            return str(args.id)
        ranked = "id" if self.rows is None else self.rows["column"]
        if ranked is None:
            return None
        there = readers.columns(data, quote=self.quote(args))
        if not there:
            readers.check_columns(data, there, [ranked])
        if ranked not in there:
            known = "" if self.rows is None else ", by which it was ranked"
            what = f"no column {ranked!r}{known}; it has {', '.join(map(repr, there))}"
            do = "name the column with the ids in --id, or say --rows if they are numbers of rows"
            raise UserError(what, where=data, do=do)
        return str(ranked)

    def _others(self, args: argparse.Namespace, data: Path) -> list[str]:
        """Return columns of ``data`` beside ``id`` that plain ids may be of, by their names."""
        if args.rows or args.id is not None or self.rows is not None:
            return []
        files = [readers.columns(file, quote=self.quote(args)) for file in tabular.find(data)]
        names = [name for name in files[0] if name != "id" and AN_ID.search(name)]
        return [name for name in names if all(there.count(name) == 1 for there in files)]

    def text(self, args: argparse.Namespace, data: Path) -> str | None:
        """Return the column of ``data`` whose texts are compared with those that were ranked; None
        where they cannot be, or need not. Raises ``UserError`` where there is no such column."""
        if args.text is not None:
            return str(args.text)
        known = None if self.rows is None else self.rows["text"]
        if known is None or (args.changed_texts and not self.cuts):
            return None
        if known not in (there := readers.columns(data, quote=self.quote(args))):
            what = f"no column {known!r} with the texts that were ranked"
            what += f"; it has {', '.join(map(repr, there))}"
            do = "name it in --text, or say --changed-texts to go by the ids alone"
            raise UserError(what, where=data, do=do)
        return str(known)

    def quote(self, args: argparse.Namespace) -> bool:
        """Return whether quotes hold cells of CSV and TSV together: as asked for, or as they were
        read for the ranking."""
        said = args.quote or (self.rows or {}).get("quote") or "double"
        return bool(said == "double")

    def removal(self, args: argparse.Namespace, data: Path) -> Removal:
        """Return which rows of ``data`` go by the options. Raises ``UserError`` as ``column`` and
        ``text``, and where numbers of rows could be those of another table."""
        column, text = self.column(args, data), self.text(args, data)
        if column is None and text is None and not args.rows:
            what = "the list has the numbers of rows, and their texts are not to be compared"
            do = "say --rows as well if the numbers are those of this table"
            raise UserError(what, where=data, do=do)
        return Removal(
            {*self.windows} if self.cuts else {*self.ids} | self.copied | self.close,
            column,
            text,
            texts={} if self.divided else self.texts,
            windows=self.windows,
            cuts=self.cuts,
            changed_texts=args.changed_texts,
            missing_ids=args.missing_ids,
            others=self._others(args, data),
            padded=self.padded,
        )


def _check_numbers(listed: RemovalList) -> None:
    """Raise ``UserError`` for an id that is no number of a row."""
    for name in (document_of(name) if listed.divided else name for name in listed.ids):
        if not (name.isascii() and name.isdigit() and name[0] != "0"):
            what = f"{name!r} is no number of a row: they count from 1"
            raise UserError(what, where=listed.path, do="name the column with the ids in --id")


def read(path: Path) -> RemovalList:
    """Read a list. Raises ``UserError`` as ``read_ids``, for what is no list, for one that is not
    its manifest's, and for one of an earlier ranking than the one in its run."""
    if path.suffix == ".json":
        do = "give the .parquet that it is about; ids of your own in JSON as JSON Lines with an id"
        raise UserError("is no list", where=path, do=do)
    names = columns_of(path)
    if names is None or not names >= OURS:
        return _plain(path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        what = "is a removal list in another format, of which copies would stay"
        raise UserError(what, where=path, do="give the .parquet that the run has made")
    table, about = read_table(path, schemas.REMOVALS), read_metadata(path)
    if "rows" not in about:
        do = "delete it and run again"
        raise UserError("does not say what its ids are", where=path, do=do)
    place = paths.wildcards(paths.REMOVAL, path.absolute())
    ids, copies, own, others = (
        table[name].to_pylist() for name in ("id", "copies", "text_sha256", "copies_sha256")
    )
    texts = dict(zip(ids, own, strict=True))
    for names_, sums in zip(copies, others, strict=True):
        texts.update(zip(names_, sums, strict=True))
    listed = RemovalList(
        path,
        ids,
        copies=dict(zip(ids, copies, strict=True)),
        texts=texts,
        rows=about["rows"],
        made_from=about.get("provenance", {}).get("inputs", {}),
        place=place,
        manifest=_manifest(path.with_suffix(".json"), ids),
    )
    if place is not None:
        _refuse_earlier(listed)
    return _of_windows(listed) if listed.divided else _with_cross_posts(listed)


def _plain(path: Path) -> RemovalList:
    """Return a list of plain ids, with what lies beside those that this program exported."""
    ids = read_ids(path)
    beside = path.with_name(path.name + SIDECAR)
    if not beside.is_file():
        return RemovalList(path, ids, padded=padded(path))
    about = read_json(beside)
    if about.get("ids_sha256") != digest(ids):
        do = "export it again, or remove the manifest of another list"
        raise UserError(f"is not the list of {beside.name} beside it", where=path, do=do)
    known = about["text_sha256"]
    texts = dict(zip(ids, known, strict=True)) if known else {}
    return RemovalList(path, ids, texts=texts, rows=about["rows"])


def _with_cross_posts(listed: RemovalList) -> RemovalList:
    """Return a list with the texts that stand in both domains, where it lies in its run."""
    if listed.place is None:
        return listed
    rows = listed.duplicates()
    return replace(listed, cross_posts=[r["id"] for r in rows if r["reason"] == "cross_post"])


def _of_windows(listed: RemovalList) -> RemovalList:
    """Return a list of windows: those that are cut, or the documents that go for them."""
    if listed.cuts:
        windows = _windows(listed.texts.items())
        return replace(_with_cross_posts(listed), windows=windows)
    # Of a document in which the list ends the whole goes; where windows have labels of their own, a
    # document goes for each that is listed.
    documents: dict[str, list[str]] = {document_of(name): [] for name in listed.ids}
    known: Mapping[str, Any] = documents if listed.labelled else listed.copies
    texts, stay = {**listed.texts}, set()
    for row in listed.duplicates():
        of, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        if row["reason"] == "cross_post":
            stay.add(document)
        if document not in documents and (row["kept_id"] in known or of in known):
            documents[of].append(document)
            texts[row["id"]] = row["text_sha256"]
    for several in documents.values():
        several[:] = dict.fromkeys(several)
    return replace(
        listed,
        ids=[*documents],
        copies=documents,
        cross_posts=sorted(stay),
        windows=_windows(texts.items()),
    )


def _windows(texts: Iterable[tuple[str, str]]) -> Windows:
    found: Windows = {}
    for window, text in texts:
        found.setdefault(document_of(window), {})[span_of(window)] = text
    return found


def _refuse_earlier(listed: RemovalList) -> None:
    from mamushi.evidence.ranking import is_earlier

    names = {name: value for name, value in (listed.place or {}).items() if name != "root"}
    if is_earlier(Path((listed.place or {})["root"]), names, listed.made_from):
        do = "make it again: mamushi list --budget {beta} --selector {selector}".format(**names)
        what = "is of an earlier ranking than the one that is there"
        raise UserError(what, where=listed.path, do=do)


def with_close(listed: RemovalList, path: Path) -> RemovalList:
    """Return a list with the close texts that ``mamushi close`` found. Raises ``UserError`` for
    those of another list."""
    rows = read_table(path, schemas.CLOSE).to_pylist()
    if read_metadata(path)["list_sha256"] != sha256(listed.path):
        do = f"make it with mamushi close {listed.path}"
        raise UserError("is of another list", where=path, do=do)
    texts = {row["id"]: row["text_sha256"] for row in rows}
    for row in rows:
        texts.update(zip(row["copies"], row["copies_sha256"], strict=True))
    of = document_of if listed.whole else str
    # A copy may stand in a document that goes anyway.
    close = {of(name) for name in texts} - {*listed.ids, *listed.copied}
    windows = {name: {**spans} for name, spans in listed.windows.items()}
    if listed.divided:
        for name, spans in _windows(texts.items()).items():
            if listed.cuts or name in close:
                windows.setdefault(name, {}).update(spans)
    known = listed.texts if listed.divided else {**listed.texts, **texts}
    return replace(listed, close=frozenset(close), windows=windows, texts=known)


def _manifest(path: Path, ids: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the manifest beside a list, None without one. Raises ``UserError`` for a damaged one,
    and for that of another list."""
    if not path.is_file():
        return None
    manifest = read_json(path)
    if manifest.get("ids_sha256") != digest(ids):
        do = "make both again with mamushi run removals, or take the other list's manifest away"
        raise UserError("is of another list than the one beside it", where=path, do=do)
    return manifest
