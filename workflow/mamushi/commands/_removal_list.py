"""A removal list, as commands for people take it: of this program, or plain ids."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.tables import read_table
from mamushi.configuration.sources import unlabelled
from mamushi.data.readers import columns
from mamushi.data.rewriting import tables
from mamushi.data.windows import Span, document_of, span_of
from mamushi.errors import UserError
from mamushi.evidence import ledger
from mamushi.selection.removals import digest
from mamushi.unlearning.removal import read_ids


@dataclass(frozen=True)
class RemovalList:
    """What a list says, and what lies beside it."""

    path: Path
    ids: list[str]
    copies: Mapping[str, list[str]] = field(default_factory=dict)
    """Those that go with a listed id."""
    cross_posts: list[str] = field(default_factory=list)
    """Texts of the dataset that stood in both domains: in no list."""
    manifest: Mapping[str, Any] | None = None
    card: Mapping[str, Any] | None = None
    """What the dataset was made from."""
    examples: Path | None = None
    windows: Mapping[str, Mapping[Span, str | None]] = field(default_factory=dict)
    """Of a list of windows to cut: by document, the characters of each and what stands there, None
    of a near copy, of which that is not kept."""

    @property
    def copied(self) -> set[str]:
        """Return the ids of all copies."""
        return {copy for each in self.copies.values() for copy in each}

    @property
    def all(self) -> set[str]:
        """Return the ids of texts with their copies. Raises ``UserError`` for windows to cut."""
        if self.windows:
            do = "cut them with mamushi apply"
            raise UserError("lists windows of texts, and no texts", where=self.path, do=do)
        return {*self.ids} | self.copied

    def all_copies(self) -> tuple[Path, dict[str, list[str]]]:
        """Return where the texts of its run are, and the copies of each, also of those that stay.
        Raises ``UserError`` for a list away from its run."""
        if self.examples is None:
            do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
            what = "no run lies around it, whose texts could be searched"
            raise UserError(what, where=self.path, do=do)
        found: dict[str, list[str]] = {}
        duplicates = self.examples.with_name(Path(paths.DUPLICATES).name)
        for row in read_table(duplicates, schemas.DUPLICATES).to_pylist():
            found.setdefault(row["kept_id"], []).append(row["id"])
        return self.examples, found

    @property
    def loader(self) -> Mapping[str, Any]:
        """Return the settings of the table that the dataset was made from; none of another
        loader's."""
        settings = self.card["settings"] if self.card else {}
        return dict(settings["loader"]) if settings.get("kind") == "table" else {}

    @property
    def named_by(self) -> dict[str, Any] | None:
        """Return what the ids are: of a column, the numbers of the rows of some files, or a
        loader's; None of plain ids."""
        if not self.card or (kind := self.card["settings"]["kind"]) is None:
            return None
        named: dict[str, Any] = {"loader": kind}
        if kind == "table":
            column = self.loader["id"]
            named |= (
                {"rows_of": dict(self.card["inputs"])} if column is None else {"column": column}
            )
        return named

    def was_ranked(self, data: Path) -> bool:
        """Return whether it is the table that the dataset was made from."""
        inputs = self.card["inputs"].values() if self.card else ()
        return {sha256(path) for path in tables(data)} <= {*inputs}

    def column(self, given: str | None, data: Path) -> str | None:
        """Return the column of ``data`` with the ids, or None for row numbers.

        It is the given one, or that of the dataset; of a plain list ``id``, where there is such a
        column. Raises ``UserError`` where the ids are the row numbers of another file.
        """
        if given is not None:
            return given
        if self.loader:
            name: str | None = self.loader["id"]
            if name is None and not self.was_ranked(data):
                what = "is not the file that was ranked, and the list has the numbers of its rows"
                do = "give that file, or rank again with a column of ids"
                raise UserError(what, where=data, do=do)
            return name
        return "id" if "id" in columns(data) else None


def read(path: Path) -> RemovalList:
    """Read the list, or of an entry of a ledger all that is removed up to it.

    Raises ``UserError`` as ``read_ids``, for a list that is not its manifest's, and for an entry
    that is not as it was written, or one before it.
    """
    if path.suffix == ".json":
        state = ledger.state_at(path)
        named_by = state.named_by or {}
        settings = {"kind": named_by.get("loader"), "loader": {"id": named_by.get("column")}}
        made_from = {"settings": settings, "inputs": named_by.get("rows_of", {})}
        return RemovalList(path, sorted(state.ids), card=made_from)
    ids = read_ids(path)
    where = paths.wildcards(paths.REMOVAL, path.absolute())
    about = _manifest(path.with_suffix(".json"), beside_a_copy=where is None)
    if about is not None and about["ids_sha256"] != digest(ids):
        do = "make it again with mamushi run removals, or give it without its manifest"
        raise UserError("is not the list of the manifest beside it", where=path, do=do)
    if about is None and where is None:
        return RemovalList(path, ids)
    table = read_table(path, schemas.REMOVALS)
    copies = dict(zip(table["id"].to_pylist(), table["copies"].to_pylist(), strict=True))
    if where is None:
        # A copy, away from its run.
        if about is not None and about.get("windows"):
            do = "give the list where it lies in its run"
            raise UserError("lists windows, and their texts are in its run", where=path, do=do)
        return RemovalList(path, ids, copies, manifest=about)
    card, duplicates, examples = (
        paths.under(pattern=pattern, **where)
        for pattern in (paths.DATA_CARD, paths.DUPLICATES, paths.EXAMPLES)
    )
    gone = read_table(duplicates, schemas.DUPLICATES).to_pylist() if duplicates.is_file() else []
    found = RemovalList(
        path,
        ids,
        copies=copies,
        cross_posts=[row["id"] for row in gone if row["reason"] == "cross_post"],
        manifest=about,
        card=read_json(card) if card.is_file() else None,
        examples=examples if examples.is_file() else None,
    )
    if not (divided := found.loader.get("windows")):
        return found
    if divided["action"] == "cut":
        near = {row["id"] for row in gone if row["reason"] == "near"}
        return replace(found, windows=_windows(found, examples, near))
    # Of a document in which the list ends the whole goes; where windows have labels of their own, a
    # document goes for each that is listed.
    documents: dict[str, list[str]] = {document_of(name): [] for name in ids}
    known = copies if unlabelled(found.loader) else documents
    for row in gone:
        of, own = document_of(row["kept_id"] or ""), document_of(row["id"])
        if own not in documents and (row["kept_id"] in known or of in known):
            documents[of].append(own)
    stay = sorted({document_of(name) for name in found.cross_posts})
    return replace(found, ids=[*documents], copies=documents, cross_posts=stay)


def _windows(
    listed: RemovalList, examples: Path, near: set[str]
) -> dict[str, dict[Span, str | None]]:
    """Return what is cut of which document. Raises ``UserError`` without the texts."""
    table = read_table(examples, schemas.EXAMPLES, ["id", "text"])
    texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    found: dict[str, dict[Span, str | None]] = {}
    for name in listed.ids:
        for window in (name, *listed.copies[name]):
            text = None if window in near else texts[name]
            found.setdefault(document_of(window), {})[span_of(window)] = text
    return found


def _manifest(path: Path, *, beside_a_copy: bool) -> Mapping[str, Any] | None:
    """Return the manifest of a list, None without one. Beside a copy that is away from its run, a
    file of that name may be another one's."""
    if not path.is_file():
        return None
    with contextlib.suppress(*[UserError] * beside_a_copy):
        found: Mapping[str, Any] = read_json(path)
        if not beside_a_copy or (isinstance(found, dict) and "ids_sha256" in found):
            return found
    return None
