"""Removal lists of windows: which are cut out of their documents, or which documents go."""

from collections import defaultdict
from dataclasses import replace

from mamushi_curate.listed import WHOLE, ListedTexts
from mamushi_extras.windows.windows import WindowSpan, document_of, span_of


def as_window_list(listed: ListedTexts) -> ListedTexts:
    """Return a list of windows as those that are cut, or the documents that go for them."""
    divided = (listed.rows or {})["windows"]
    windows = defaultdict[str, dict[WindowSpan, str]](dict)
    for window, ranked in listed.texts.items():
        windows[document_of(window)][span_of(window)] = ranked[WHOLE]
    if divided["action"] == "cut":
        return replace(listed, texts=windows, cut=True)
    documents: dict[str, list[str]] = {document_of(name): [] for name in listed.ids}
    for row in listed.duplicates():
        original, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        goes = original in documents if divided["labelled"] else row["kept_id"] in listed.copies
        if goes and document not in documents:
            documents[original].append(document)
            windows[document][span_of(row["id"])] = row["text_sha256"]
    copies = {name: [*dict.fromkeys(several)] for name, several in documents.items()}
    return replace(listed, ids=[*documents], copies=copies, texts=windows)
