"""Removal lists of windows: which are cut out of their documents, or which documents go."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mamushi.commands._removal_list import ListedTexts
from mamushi.data import cutting
from mamushi.data.conversations import SYSTEM, Spoken
from mamushi.data.matching import RowRemoval
from mamushi.errors import UserError
from mamushi.io.digests import of_text
from mamushi_extras.windows.windows import WindowSpan, document_of, span_of

_Windows = dict[str, dict[WindowSpan, str]]
"""By document, the digest of each window by its characters there."""


@dataclass(frozen=True)
class DocumentList(ListedTexts):
    """A list of windows whose documents go. Where the documents are ``labelled``, the whole goes of
    one in which the list ends; else a document goes for each window that is listed."""

    windows: Mapping[str, Mapping[WindowSpan, str]] = field(default_factory=dict)
    """Of each document the windows that it goes for, or that are cut."""
    labelled: bool = False

    def all_copies(self) -> tuple[Path, Callable[[str], list[str]]]:
        """Do as ``RemovalList``: of documents with labels the first window is kept for all windows
        of a copy."""
        examples = self.of_run("examples")
        of = document_of if self.labelled else str
        copies: dict[str, list[str]] = {}
        for row in self.duplicates():
            copies.setdefault(of(row["kept_id"] or ""), []).append(row["id"])
        return examples, lambda name: copies.get(of(name), [])

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return the rows that go, with their windows compared."""
        return WindowRemoval(self.all, column, text, windows=self.windows, **options)


@dataclass(frozen=True)
class CutList(DocumentList):
    """A list of windows that are cut out of their documents, which stay."""

    def row_names(self) -> list[str]:
        """Return the ids of the documents."""
        return [*self.windows]

    @property
    def all(self) -> set[str]:
        """Raise ``UserError``: it lists no texts."""
        do = "cut them with mamushi apply"
        raise UserError("lists windows of texts, and no texts", where=self.path, do=do)

    def text(self, args: argparse.Namespace, data: Path) -> str | None:
        """Do as ``RemovalList``, also where changed texts may go: none are cut unseen."""
        options = argparse.Namespace(**{**vars(args), "changed_texts": False})
        return super().text(options, data)

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return what is cut out of which rows."""
        return CutRemoval({*self.windows}, column, text, windows=self.windows, **options)

    def exported(self) -> list[str]:
        """Raise ``UserError``: it has no ids of texts."""
        do = "give the list itself to mamushi apply"
        raise UserError("lists windows to cut", where=self.path, do=do)

    def receipt(self, removal: RowRemoval) -> dict[str, Any]:
        """Return how many of its windows' documents are there, and which are not."""
        counts = super().receipt(removal)
        copies = sum(document_of(name) in removal.seen_ids for name in self.copied)
        missing = [name for name in self.windows if name not in removal.seen_ids]
        return {**counts, "copies_found": copies, "not_found": missing}

    def report(self, removal: RowRemoval) -> list[str]:
        """Return what was cut, in lines to print."""
        assert isinstance(removal, CutRemoval)
        rows = f"{removal.removed:,} of {removal.read:,} rows removed"
        unit = "turns" if "turns" in removal.cut else "characters"
        return [
            f"{removal.cut[unit]:,} {unit} cut from {removal.cut['rows']:,} rows",
            f"{rows}, of which nothing would be left",
        ]


@dataclass
class WindowRemoval(RowRemoval):
    """Which rows go for which of their windows."""

    windows: Mapping[str, Mapping[WindowSpan, str]] = field(default_factory=dict)
    """By document and the characters there, the digest of each window."""

    def is_same(self, name: str, text: str) -> bool | None:
        """Tell whether the windows of a text are those that were ranked; None of a text of which
        nothing is known."""
        if name not in self.windows:
            return None
        windows = self.windows[name].items()
        return all(of_text(text[slice(*span)]) == digest for span, digest in windows)


@dataclass
class CutRemoval(WindowRemoval):
    """Windows that are cut out of rows, or the turns in which they stand, with their exchange. Rows
    stay unless nothing would be left of them."""

    needs_same = True
    cut: dict[str, int] = field(default_factory=lambda: {"rows": 0, "characters": 0})
    """Rows of which something was cut and that stay, and the characters, or turns, that were."""
    counted = (*RowRemoval.counted, "cut")

    def cuts(self, name: str, spoken: Spoken) -> set[int] | None:
        """Return the places of the characters, or turns, that are cut; None where the row goes."""
        if spoken.places:
            places = turns_of(spoken, self.windows[name])
            self.cut["turns"] = self.cut.get("turns", 0) + len(places)
            left = enumerate(role for role, *_ in spoken.places)
            stays = any(at not in places and role not in SYSTEM for at, role in left)
        else:
            places = {at for span in self.windows[name] for at in range(*span)}
            self.cut["characters"] += len(places)
            stays = bool(cutting.without_characters(spoken.text, places).strip())
        if not stays:
            return None
        self.removed, self.cut["rows"] = self.removed - 1, self.cut["rows"] + 1
        return places

    def counts(self) -> dict[str, Any]:
        """Return what was cut, for the receipt."""
        return {"cut": self.cut}


def turns_of(spoken: Spoken, windows: Iterable[WindowSpan]) -> set[int]:
    """Return the places of the turns that go for some windows: those in which these stand, and with
    one its exchange, from the question on to the next, so that what is left is still asked and
    answered by turns. What the system says is part of none."""
    exchange, before, numbers = 0, "", list[int]()
    for role, *_ in spoken.places:
        exchange += role == "user" and before != "user"
        before = role
        numbers.append(-1 if role in SYSTEM else exchange)
    listed = {
        at
        for at, (_, start, stop) in enumerate(spoken.places)
        if any(first < stop and start < behind for first, behind in windows)
    }
    exchanges = {numbers[at] for at in listed} - {-1}
    return listed | {at for at, number in enumerate(numbers) if number in exchanges}


def of_windows(listed: ListedTexts) -> ListedTexts:
    """Return a list of windows as those that are cut, or the documents that go for them. ``rows``
    of the list say how documents were divided."""
    divided = (listed.rows or {})["windows"]
    fields_of_list = {part.name: getattr(listed, part.name) for part in fields(ListedTexts)}
    if divided["action"] == "cut":
        return CutList(**fields_of_list, windows=_by_document(listed.texts.items()))
    labelled = bool(divided["labelled"])
    documents: dict[str, list[str]] = {document_of(name): [] for name in listed.ids}
    kept: Mapping[str, Any] = documents if labelled else listed.copies
    texts, stay = {**listed.texts}, set()
    for row in listed.duplicates():
        of, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        if row["reason"] == "cross_post":
            stay.add(document)
        if document not in documents and (row["kept_id"] in kept or of in kept):
            documents[of].append(document)
            texts[row["id"]] = row["text_sha256"]
    for several in documents.values():
        several[:] = dict.fromkeys(several)
    fields_of_list |= {"ids": [*documents], "copies": documents, "cross_posts": sorted(stay)}
    return DocumentList(**fields_of_list, windows=_by_document(texts.items()), labelled=labelled)


def _by_document(texts: Iterable[tuple[str, str]]) -> _Windows:
    windows: _Windows = {}
    for window, digest in texts:
        windows.setdefault(document_of(window), {})[span_of(window)] = digest
    return windows
