"""A first look at a corpus that is too large to be embedded: which of its texts can be of a domain.

A logistic regression on hashed words (tf-idf) tells the examples of the domain from a sample of the
corpus. The texts that score highest by it are embedded and ranked; of the others nothing is kept.
A document that is divided into windows scores as the best of these.

The examples, a sample of the domain, say what is missed: each passes where it is among the highest
by a fit without it and its copies. A sample of the texts beneath says less: a thousand without one
of the domain leave room for 3,000 in a million.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

from mamushi.data import readers
from mamushi.data.conversations import Conversations
from mamushi.data.duplicates import find_duplicates
from mamushi.data.loaders.table import raw_of, read_raw
from mamushi.data.readers import FileTable, TableRow
from mamushi.data.rows import needed_columns, texts_and_turns
from mamushi.data.scripts import units
from mamushi.errors import UserError
from mamushi_extras.unlabelled import like
from mamushi_extras.windows.windows import parts

_Scores = NDArray[np.float32]

FEATURES, FOLDS, SAMPLE = 2**20, 10, 20_000
COPIES, SHINGLE = 0.5, 3
"""Similarity at which examples are taken for copies, and words of a shingle."""
SCREEN_BLOCK = 8192
"""Texts that are scored at a time."""


@dataclass
class Screen:
    """Scores texts by the ``weights`` (FEATURES, 1 + FOLDS) of their words, times their ``rarity``:
    first those by all examples, then those by all but a fold, which ``fold`` (m,) has of each. Of a
    corpus the highest of all these scores are kept, ``best`` (passed, 1 + FOLDS). Documents are
    divided by ``windows``, if that is not None."""

    weights: _Scores
    rarity: TfidfTransformer
    fold: NDArray[np.int64]
    windows: Mapping[str, Any] | None = None
    best: _Scores = field(default_factory=lambda: np.empty((0, 1 + FOLDS), np.float32))

    def scores(self, texts: Iterable[Any]) -> _Scores:
        """Return the scores of each text (n, 1 + FOLDS): the higher, the more like the examples. A
        text without words has the lowest."""
        vectors = self.rarity.transform(_counts(texts))
        scores = np.asarray(vectors @ self.weights)
        scores[vectors.getnnz(axis=1) == 0] = -np.inf
        return scores

    def through(
        self, rows: Iterator[TableRow], conversations: Conversations, most: int
    ) -> list[TableRow]:
        """Return the ``most`` rows whose text scores highest, in their order; of equal scores, the
        first ones."""
        kept: list[TableRow] = []
        kept_scores = np.empty(0, np.float32)
        while block := list(islice(rows, SCREEN_BLOCK)):
            texts = [conversations.read(cells, place).text for _, place, cells in block]
            divided = [_windows(text, self.windows) for text in texts]
            first = np.cumsum([0, *map(len, divided[:-1])])
            scores = np.maximum.reduceat(self.scores(chain.from_iterable(divided)), first)
            self.best = np.concatenate([self.best, scores])
            kept, kept_scores = kept + block, np.concatenate([kept_scores, scores[:, 0]])
            if len(kept_scores) > 2 * most:
                kept, kept_scores = self._highest(kept, kept_scores, most)
        return self._highest(kept, kept_scores, most)[0]

    def _highest(
        self, kept: list[TableRow], kept_scores: _Scores, most: int
    ) -> tuple[list[TableRow], _Scores]:
        if len(kept_scores) > most:
            self.best = np.partition(self.best, -most, axis=0)[-most:]
        order = np.sort(np.argsort(-kept_scores, kind="stable")[:most])
        return [kept[place] for place in order.tolist()], kept_scores[order]

    def margins(self, examples: Sequence[str], unseen: Sequence[str] = ()) -> NDArray[np.float64]:
        """Return by how much the examples are above what passes, by the fits without them, and then
        ``unseen`` ones, to which nothing was fitted; a text without words as the lowest one."""
        column = np.concatenate([1 + self.fold, np.zeros(len(unseen), np.int64)])
        scores = self.scores([*examples, *unseen])[np.arange(len(column)), column]
        lowest = np.where(np.isfinite(self.best), self.best, np.inf).min(axis=0)
        margin = scores.astype(np.float64) - lowest[column]
        return np.maximum(margin, margin[np.isfinite(margin)].min(initial=0.0))


def screen(settings: Mapping[str, Any], columns: Sequence[str]) -> tuple[FileTable, like.Screened]:
    """Read the ``columns`` of those rows of a corpus that its ``screen`` lets through; it is read
    twice. Raises ``UserError`` as ``readers.read_file_columns`` and ``like.check_examples``, and
    where few examples pass.
    """
    path, beside, part = settings["path"], like.read_beside(settings), settings.get("part", "whole")
    quote = settings.get("quote") is None
    conversations = Conversations(settings["text"], part)
    rows, n = readers.sampled(path, conversations.columns, SAMPLE, quote=quote)
    sample, _ = texts_and_turns(rows, conversations)
    like.check_examples(beside, sample, settings)
    examples = [spoken.text for _, spoken in beside["like"]]
    windows, draw = settings.get("windows"), np.random.default_rng(0)
    # An example is a passage, which is told from passages.
    sample = [str(draw.choice(_windows(text, windows))) for text in sample]
    screen, most = fit_screen(examples, sample, windows), settings["forget"]["screen"]
    # Below 1 it is a share.
    most = int(min(n, most if most >= 1 else np.ceil(most * n)))
    table = readers.read_file_columns(
        path, columns, lambda rows: screen.through(rows, conversations, most), quote=quote
    )
    if table.digests != rows.digests:
        raise UserError("has changed while it was read", where=path, do="run again")
    if (m := int((screen.margins(examples) >= 0).sum())) < like.FEWEST_EXAMPLES:
        problem = f"lets {m} of {len(examples)} examples through among {most:,} of {n:,} texts"
        raise UserError(
            problem, where="screen", do=f"let through more; {like.FEWEST_EXAMPLES} have to pass"
        )
    return table, ({"texts": n, "passed": len(table.places)}, screen.margins)


def fit_screen(
    examples: Sequence[str], sample: Sequence[str], windows: Mapping[str, Any] | None = None
) -> Screen:
    """Fit a screen to the examples against a ``sample`` of the corpus, of which some may be of the
    domain as well."""
    from scipy.sparse import vstack

    counts, m = _counts([*examples, *sample]), len(examples)
    rarity = TfidfTransformer(sublinear_tf=True).fit(counts)
    # A weight for each word that occurs, and not for each that could.
    occurring = np.unique(counts.indices)
    vectors = rarity.transform(counts)[:, occurring]
    domain, corpus = vectors[:m], vectors[m:]

    def fitted(rows: NDArray[np.bool_]) -> _Scores:
        labels = np.repeat([1, 0], [rows.sum(), corpus.shape[0]])
        model = LogisticRegression(class_weight="balanced", max_iter=200)
        model.fit(vstack([domain[rows], corpus]), labels)
        return np.asarray(model.coef_[0], np.float32)

    # Copies of a text are left out with it.
    every = np.ones(m, dtype=bool)
    roots = find_duplicates(examples, every, threshold=COPIES, words=SHINGLE).roots
    distinct, cluster = np.unique(roots, return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(distinct)) % FOLDS)[cluster]
    weights = np.zeros((FEATURES, 1 + FOLDS), np.float32)
    fits = [every, *(fold != number for number in range(FOLDS))]
    weights[occurring] = np.stack([fitted(rows) for rows in fits], axis=1)
    return Screen(weights, rarity, fold, windows)


def _windows(text: Any, settings: Mapping[str, Any] | None) -> list[Any]:
    """Return the windows of a document; what is not divided, or no text, as it is."""
    if settings is None or not isinstance(text, str):
        return [text]
    return [text[start:stop] for start, stop in parts(text, settings)]


def _counts(texts: Iterable[Any]) -> Any:
    """Return how often each text has each hashed word (n, FEATURES); what is no text has none."""
    return HashingVectorizer(
        **{"n_features": FEATURES, "alternate_sign": False, "norm": None, "dtype": np.float32},
        analyzer=lambda text: units(text) if isinstance(text, str) else (),
    ).transform(texts)


def read_corpus_rows(settings: Mapping[str, Any]) -> like.CorpusRows:
    """Read a corpus, or what a screen lets through of it, with what lies beside it. Raises
    ``UserError`` as ``readers.read_file_columns``, ``rows.raw_columns`` and
    ``like.with_examples``."""
    if not settings["forget"].get("screen"):
        return like.with_examples(read_raw(settings), settings)
    table, screened = screen(settings, needed_columns(settings))
    return like.with_examples(raw_of(table, settings, table.digests), settings, screened)
