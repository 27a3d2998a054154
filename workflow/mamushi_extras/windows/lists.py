"""Removal lists of windows: which are cut out of their documents, or which documents go."""

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mamushi.errors import UserError
from mamushi.io.digests import of_text
from mamushi_curate.cutting import without_characters
from mamushi_curate.listed import ListedTexts, RowRemoval
from mamushi_extras.windows.windows import WindowSpan, document_of, span_of

Windows = Mapping[str, Mapping[WindowSpan, str]]
"""By document, the digest of each window by its characters there."""


@dataclass(frozen=True)
class WindowList(ListedTexts):
    """A list of ``windows`` whose documents go, or that are ``cut`` out of these, which stay."""

    windows: Windows = field(default_factory=dict)
    cut: bool = False

    @property
    def all(self) -> set[str]:
        """Return the documents that go. Raises ``UserError`` for windows to cut, which are none."""
        if self.cut:
            do = "cut them with mamushi apply"
            raise UserError("lists windows to cut, and no texts", where=self.path, do=do)
        return super().all

    def exported(self) -> list[str]:
        """Return the ids by rank with their copies. Raises ``UserError`` as ``all``."""
        return super().exported() if self.all else []

    def text(self, args: argparse.Namespace) -> str | None:
        """Do as other lists, also where changed texts may go: none are cut unseen."""
        compared = {**vars(args), "changed_texts": args.changed_texts and not self.cut}
        return super().text(argparse.Namespace(**compared))

    def removing(self, column: str | None, text: str | None, **options: Any) -> RowRemoval:
        """Return what goes of which rows, with their windows compared."""
        documents = {*self.windows} if self.cut else self.all
        compared: dict[str, Any] = {"windows": self.windows, "needs_same": self.cut}
        return WindowRemoval(documents, column, text, **compared, **options)

    def receipt(self, removal: RowRemoval) -> dict[str, Any]:
        """Return how many of its documents are there, and which are not."""
        if not self.cut:
            return super().receipt(removal)
        copies = sum(document_of(name) in removal.seen_ids for name in self.copied)
        missing = [name for name in self.windows if name not in removal.seen_ids]
        return {**super().receipt(removal), "copies_found": copies, "not_found": missing}

    def report(self, removal: RowRemoval) -> list[str]:
        """Return what was removed or cut, in lines to print."""
        if not self.cut:
            return super().report(removal)
        cut, rows = removal.counts()["cut"], f"{removal.removed:,} of {removal.read:,} rows removed"
        return [
            f"{cut['characters']:,} characters cut from {cut['rows']:,} rows",
            f"{rows}, of which nothing would be left",
        ]


@dataclass
class WindowRemoval(RowRemoval):
    """Which rows go for which of their ``windows``; where texts need to be the same, these are cut
    out of rows, which stay unless nothing would be left of them."""

    windows: Windows = field(default_factory=dict)
    needs_same: bool = False
    cut_rows: int = 0
    """Rows of which something was cut and that stay."""
    cut_characters: int = 0

    def is_same(self, name: str, text: str) -> bool | None:
        """Tell whether the windows of a text are those that were ranked; None of a text of which
        nothing is known."""
        if name not in self.windows:
            return None
        windows = self.windows[name].items()
        return all(of_text(text[slice(*span)]) == digest for span, digest in windows)

    def cuts(self, name: str, text: str) -> set[int] | None:
        """Return the places of the characters that are cut; None where the row goes."""
        if not self.needs_same:
            return None
        places = {at for span in self.windows[name] for at in range(*span)}
        self.cut_characters += len(places)
        if not without_characters(text, places).strip():
            return None
        self.removed, self.cut_rows = self.removed - 1, self.cut_rows + 1
        return places

    def counts(self) -> dict[str, Any]:
        """Return what was cut, for the receipt."""
        cut = {"rows": self.cut_rows, "characters": self.cut_characters}
        return {"cut": cut} if self.needs_same else {}


def as_window_list(listed: ListedTexts) -> ListedTexts:
    """Return a list of windows as those that are cut, or the documents that go for them. ``rows``
    of the list say how documents were divided."""
    divided = (listed.rows or {})["windows"]
    by_document = defaultdict[str, dict[WindowSpan, str]](dict)
    for window, digest in listed.texts.items():
        by_document[document_of(window)][span_of(window)] = digest
    if divided["action"] == "cut":
        return WindowList(**vars(listed), windows=by_document, cut=True)
    documents: dict[str, list[str]] = {document_of(name): [] for name in listed.ids}
    for row in listed.duplicates():
        original, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        goes = original in documents if divided["labelled"] else row["kept_id"] in listed.copies
        if goes and document not in documents:
            documents[original].append(document)
            by_document[document][span_of(row["id"])] = row["text_sha256"]
    copies = {name: [*dict.fromkeys(several)] for name, several in documents.items()}
    changed = {"ids": [*documents], "copies": copies}
    return WindowList(**{**vars(listed), **changed}, windows=by_document)
