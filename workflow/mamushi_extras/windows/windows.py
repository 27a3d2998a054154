"""Windows of long documents: each is a text of its own, and its id says where it stands."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mamushi.data.duplicates import Duplicates, find_duplicates
from mamushi.data.raw import Raw, Rows, check_unique
from mamushi.data.scripts import PIECES, has_unspaced
from mamushi.errors import UserError
from mamushi.io.domains import TURNS
from mamushi.selection.crossfit import Task
from mamushi.selection.folds import stratified_folds
from mamushi.selection.pool import Pool, Scored

BREAK = re.compile(r"(?:[\n\u2028]\s*[\n\u2028]|\u2029)\s*")  # Between two paragraphs.
WindowSpan = tuple[int, int]
DOCUMENT = "document"
"""Column of a pool: codes of the documents that the examples are windows of."""
RIDGE = 0.1  # Of what chooses windows, where a standardised column has the variance 1.


def window_spans(text: str, words: int) -> Iterator[WindowSpan]:
    """Iterate over the windows of a text: the first character of each, and the one behind its last.

    A paragraph of more than ``words`` is divided into as few windows as can be, all of about the
    same length. White space belongs to what stands before it, so that none is left of what is cut.
    """
    edges = [0, *(match.end() for match in BREAK.finditer(text)), len(text)]
    for start, stop in pairwise(edges):
        places = [match.span() for match in re.compile(r"\S+").finditer(text, start, stop)]
        if has_unspaced(text[start:stop]):
            places = [match.span() for run in places for match in PIECES.finditer(text, *run)]
        n, begin = len(places), [*(first for first, _ in places), stop]
        count = -(-n // words)
        for i in range(count):
            yield begin[n * i // count], begin[n * (i + 1) // count]


def document_of(window: str) -> str:
    """Return the id of the document of a window."""
    return window.rpartition("#")[0]


def span_of(window: str) -> WindowSpan:
    """Return the characters of a window in its document."""
    start, stop = window.rpartition("#")[2].split("-")
    return int(start), int(stop)


@dataclass(frozen=True)
class DocumentRows(Raw):
    """Windows of documents that go as a whole: copies are documents."""

    def copies(self, rows: Rows, texts: Sequence[str], **settings: Any) -> Duplicates:
        """Return which windows are of documents that are copies of others."""
        documents = pa.array([document_of(self.ids[row]) for row in rows.tolist()])
        codes = documents.dictionary_encode().indices.to_numpy()
        first = np.unique(codes, return_index=True)[1]
        joined = [" ".join(texts[start:stop]) for start, stop in pairwise([*first, len(texts)])]
        copies = find_duplicates(joined, self.forget[rows][first], **settings)
        return Duplicates(first[copies.roots][codes], copies.reasons[codes])


def divide(raw: Raw, settings: Mapping[str, Any], labelled: bool) -> Raw:
    """Return the windows of documents as rows, which have the label and the group of theirs; an
    example beside a corpus that nobody labelled is one window, and so is a text without words.
    Raises ``UserError`` where conversations would be cut."""
    is_cut = settings["action"] == "cut"
    if is_cut and "part" in raw.extra_metadata:
        do = "leave cut out: then conversations go as a whole"
        raise UserError("nothing is cut out of conversations", where="windows", do=do)
    check_unique(raw.ids, raw.places)
    rows, ids, texts = [], [], []
    for row, text in enumerate(raw.texts):
        is_example = not labelled and raw.forget[row]
        windows = [] if is_example else [*window_spans(text, settings["words"])]
        for start, stop in windows or [(0, len(text))]:
            rows.append(row)
            ids.append(f"{raw.ids[row]}#{start}-{stop}")
            texts.append(text[start:stop])
    groups = raw.group or raw.ids
    group = [groups[row] or raw.ids[row] for row in rows]
    metadata = {**raw.extra_metadata, "windows": {**settings, "labelled": labelled}}
    # No template is of a part of a conversation.
    raw = replace(raw, labels={n: c for n, c in raw.labels.items() if n != TURNS})
    divided = raw.take(np.array(rows), ids=ids, texts=texts, group=group, extra_metadata=metadata)
    return divided if is_cut or not labelled else DocumentRows(**vars(divided))


def add_document_steps(pool: Pool, removes: bool) -> Pool:
    """Return the pool with steps for windows that inherit the label of their document: a choice of
    windows to fit on and, if whole documents are removed (``removes``), a score per document."""
    codes = np.unique([document_of(name) for name in pool.ids], return_inverse=True)[1]
    return replace(
        pool,
        columns={**pool.columns, DOCUMENT: codes.astype(np.int64)},
        fold_steps=(keep_best_windows,),
        score_steps=(score_documents,) if removes else (),
    )


def score_documents(scored: Scored, pool: Pool, by_chance: bool) -> Scored:
    """Give each window the score of its document: log mean exp(score) of its windows, which is log
    p1/p2 of the document, if any one window of it is of p1 and the others are of p2. By chance it
    is that of the first window, or short documents would be drawn to either end. In an order, a
    document takes the place of the first of its windows."""
    documents = pool.columns[DOCUMENT]
    window_scores, order = scored.scores, scored.order
    _, first, size = np.unique(documents, return_index=True, return_counts=True)
    if by_chance:
        means = window_scores[first]
    else:
        top = np.full(len(size), -np.inf)
        np.fmax.at(top, documents, window_scores)
        means = top + np.log(np.bincount(documents, np.exp(window_scores - top[documents])) / size)
    if order is not None:
        place = np.full(len(size), len(window_scores))
        np.minimum.at(place, documents[order], np.arange(len(order)))
        order = order[np.argsort(place[documents[order]], kind="stable")]
    return replace(scored, scores=means[documents], order=order)


def keep_best_windows(task: Task, pool: Pool) -> Task:
    """Return a fold that is fitted on retain documents and, of each forget document in training, on
    the window least like them: its others may be harmless. Fisher's discriminant, of one half of
    the training documents, chooses in the other half: no text that is scored has a part in it."""
    documents = pool.columns[DOCUMENT]
    forget, scores = task.forget[task.train], np.empty(len(task.train))
    half = stratified_folds(forget, 2, task.seed, task.groups_of_train)
    for chosen_half in (0, 1):
        fitted, chosen = task.train[half != chosen_half], task.train[half == chosen_half]
        x, is_forget = task.features(fitted).astype(np.float64), task.forget[fitted]
        with threadpool_limits(limits=1):
            within = np.atleast_2d(np.cov(x.T)) + RIDGE * np.eye(x.shape[1])
            apart = x[is_forget].mean(axis=0) - x[~is_forget].mean(axis=0)
            scores[half == chosen_half] = task.features(chosen) @ np.linalg.solve(within, apart)
    # People may have called single windows harmless.
    scores[~forget] = -np.inf
    order = np.lexsort((-scores, documents[task.train]))
    best = order[np.unique(documents[task.train][order], return_index=True)[1]]
    stays = ~forget
    stays[best] = True
    return replace(task, train=task.train[stays])
