"""Removal lists of windows: which are cut out of their documents, or which documents go."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.digests import of_text
from mamushi_curate.commands._removal_list import ListedTexts
from mamushi_curate.cutting import without_characters
from mamushi_curate.matching import RowRemoval
from mamushi_extras.windows.windows import WindowSpan, document_of, span_of

Windows = Mapping[str, Mapping[WindowSpan, str]]
"""By document, the digest of each window by its characters there."""


@dataclass(frozen=True)
class DocumentList(ListedTexts):
    """A list of ``windows`` whose documents go."""

    windows: Windows = field(default_factory=dict)

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return the rows that go, with their windows compared."""
        return WindowRemoval(self.all, column, text, windows=self.windows, **options)


@dataclass(frozen=True)
class CutList(DocumentList):
    """A list of windows that are cut out of their documents, which stay."""

    @property
    def all(self) -> set[str]:
        """Raise ``UserError``: it lists no texts."""
        do = "cut them with mamushi apply"
        raise UserError("lists windows to cut, and no texts", where=self.path, do=do)

    def exported(self) -> list[str]:
        """Raise ``UserError`` as ``all``."""
        return [*self.all]

    def text(self, args: argparse.Namespace, columns: Sequence[str], data: Path) -> str | None:
        """Do as other lists, also where changed texts may go: none are cut unseen."""
        options = argparse.Namespace(**{**vars(args), "changed_texts": False})
        return super().text(options, columns, data)

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return what is cut out of which rows."""
        return CutRemoval({*self.windows}, column, text, windows=self.windows, **options)

    def receipt(self, removal: RowRemoval) -> dict[str, Any]:
        """Return how many of its windows' documents are there, and which are not."""
        copies = sum(document_of(name) in removal.seen_ids for name in self.copied)
        missing = [name for name in self.windows if name not in removal.seen_ids]
        return {**super().receipt(removal), "copies_found": copies, "not_found": missing}

    def report(self, removal: RowRemoval) -> list[str]:
        """Return what was cut, in lines to print."""
        cut, rows = removal.counts()["cut"], f"{removal.removed:,} of {removal.read:,} rows removed"
        return [
            f"{cut['characters']:,} characters cut from {cut['rows']:,} rows",
            f"{rows}, of which nothing would be left",
        ]


@dataclass
class WindowRemoval(RowRemoval):
    """Which rows go for which of their ``windows``."""

    windows: Windows = field(default_factory=dict)

    def is_same(self, name: str, text: str) -> bool | None:
        """Tell whether the windows of a text are those that were ranked; None of a text of which
        nothing is known."""
        if name not in self.windows:
            return None
        windows = self.windows[name].items()
        return all(of_text(text[slice(*span)]) == digest for span, digest in windows)


@dataclass
class CutRemoval(WindowRemoval):
    """Windows that are cut out of rows, which stay unless nothing would be left of them."""

    needs_same = True
    cut: dict[str, int] = field(default_factory=lambda: {"rows": 0, "characters": 0})
    """Rows of which something was cut and that stay, and the characters that were."""

    def cuts(self, name: str, text: str) -> set[int] | None:
        """Return the places of the characters that are cut; None where the row goes."""
        places = {at for span in self.windows[name] for at in range(*span)}
        self.cut["characters"] += len(places)
        if not without_characters(text, places).strip():
            return None
        self.removed, self.cut["rows"] = self.removed - 1, self.cut["rows"] + 1
        return places

    def counts(self) -> dict[str, Any]:
        """Return what was cut, for the receipt."""
        return {"cut": self.cut}


def as_window_list(listed: ListedTexts) -> ListedTexts:
    """Return a list of windows as those that are cut, or the documents that go for them. ``rows``
    of the list say how documents were divided."""
    divided = (listed.rows or {})["windows"]
    if divided["action"] == "cut":
        return CutList(**vars(listed), windows=_by_document(listed.texts))
    documents: dict[str, list[str]] = {document_of(name): [] for name in listed.ids}
    texts = {**listed.texts}
    for row in listed.duplicates():
        original, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        goes = original in documents if divided["labelled"] else row["kept_id"] in listed.copies
        if goes and document not in documents:
            documents[original].append(document)
            texts[row["id"]] = row["text_sha256"]
    copies = {name: [*dict.fromkeys(several)] for name, several in documents.items()}
    changed = {"ids": [*documents], "copies": copies}
    return DocumentList(**{**vars(listed), **changed}, windows=_by_document(texts))


def _by_document(texts: Mapping[str, str]) -> Windows:
    windows: dict[str, dict[WindowSpan, str]] = {}
    for window, digest in texts.items():
        windows.setdefault(document_of(window), {})[span_of(window)] = digest
    return windows
