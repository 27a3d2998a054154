"""A removal list, as commands for people take it: of this program, or plain ids."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.tables import read_metadata, read_table
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
    close: frozenset[str] = frozenset()
    """Those that restate a listed one, and their copies."""

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

    @property
    def whole(self) -> bool:
        """Return whether it is of windows whose documents go."""
        return bool((self.loader.get("windows") or {}).get("action") == "remove")

    @property
    def labelled(self) -> bool:
        """Return whether it is of windows whose documents go since they have the label."""
        return self.whole and not unlabelled(self.loader)

    def all_copies(self) -> tuple[Path, Callable[[str], list[str]]]:
        """Return where the texts of its run are, and what gives the copies of one, also of one that
        stays. Raises ``UserError`` for a list away from its run."""
        if self.examples is None:
            do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
            what = "no run lies around it, whose texts could be searched"
            raise UserError(what, where=self.path, do=do)
        found: dict[str, list[str]] = {}
        # Of documents with labels the first window is kept for all windows of a copy.
        of = document_of if self.labelled else str
        for row in _duplicates(self.examples):
            found.setdefault(of(row["kept_id"] or ""), []).append(row["id"])
        return self.examples, lambda name: found.get(of(name), [])

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


def read(path: Path, *, earlier: bool = False) -> RemovalList:
    """Read the list, or of an entry of a ledger all that is removed up to it.

    Raises ``UserError`` as ``read_ids``, for a list that is not its manifest's, for one of an
    ``earlier`` ranking, unless that is allowed, and for an entry that is not as it was written, or
    one before it.
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
    if not earlier:
        _refuse_earlier(path, where)
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
        return replace(found, windows=_windows(copies, examples, gone))
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


def _refuse_earlier(path: Path, where: Mapping[str, str]) -> None:
    from mamushi.evidence.ranking import is_earlier

    names = {name: value for name, value in where.items() if name != "root"}
    inputs = read_metadata(path).get("provenance", {}).get("inputs", {})
    if is_earlier(Path(where["root"]), names, inputs):
        do = "make it again: mamushi list --budget {beta} --selector {selector}".format(**names)
        raise UserError("is of an earlier ranking than the one that is there", where=path, do=do)


def with_close(listed: RemovalList, path: Path) -> RemovalList:
    """Return a list with the close texts that ``mamushi close`` found. Raises ``UserError`` for
    those of another list."""
    rows = read_table(path, schemas.CLOSE).to_pylist()
    if read_metadata(path)["list_sha256"] != sha256(listed.path):
        do = f"make it with mamushi close {listed.path}"
        raise UserError("is of another list", where=path, do=do)
    of = document_of if listed.whole else str
    close = {of(name) for row in rows for name in (row["id"], *row["copies"])}
    windows = {name: {**each} for name, each in listed.windows.items()}
    if windows and listed.examples is not None:
        copies = {row["id"]: row["copies"] for row in rows}
        found = _windows(copies, listed.examples, _duplicates(listed.examples))
        for name, each in found.items():
            windows.setdefault(name, {}).update(each)
    # A copy may stand in a document that goes anyway.
    close -= {*listed.ids, *listed.copied}
    return replace(listed, close=frozenset(close), windows=windows)


def _duplicates(examples: Path) -> list[dict[str, Any]]:
    where = examples.with_name(Path(paths.DUPLICATES).name)
    return list(read_table(where, schemas.DUPLICATES).to_pylist())


def _windows(
    copies: Mapping[str, Sequence[str]], examples: Path, gone: Sequence[Mapping[str, Any]]
) -> dict[str, dict[Span, str | None]]:
    """Return what is cut of which document, for windows with their copies. Raises ``UserError``
    without the texts."""
    near = {row["id"] for row in gone if row["reason"] == "near"}
    table = read_table(examples, schemas.EXAMPLES, ["id", "text"])
    texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    found: dict[str, dict[Span, str | None]] = {}
    for name, several in copies.items():
        for window in (name, *several):
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
