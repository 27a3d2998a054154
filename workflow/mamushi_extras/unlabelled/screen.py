"""A first look at a corpus that is too large to be embedded: which of its texts can be of a domain.

A logistic regression on hashed words (tf-idf) tells the examples from a *sample* of the corpus: the
distinct texts with the lowest keys, which are by their content. The texts that score highest pass,
up to the *cut*; of equal scores those with the lowest keys. The same ones pass in whatever order,
and by however many processes, texts are read. The examples say what is missed: each passes where it
is among the highest by a fit without it and its copies.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from mamushi.data.duplicates import find_duplicates
from mamushi.selection.arrays import Mask
from mamushi_curate.vectors.word_vectors import count_words

FOLDS = 10
COPIES, SHINGLE = 0.5, 3  # Similarity of examples that are copies, by shingles of so many words.
SCREEN_SAMPLE = 20_000  # Texts to which a screen is fitted, beside the examples.
SCREEN_BLOCK = 8192  # Texts that are scored at a time.


class ScreenScores(NamedTuple):
    """Keys of the texts of some rows (n,), and what a screen gives them (n, 1 + FOLDS)."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float32]


class Screen(NamedTuple):
    """Scores texts of a corpus of so many ``rows`` (1,) by the ``weights`` (w, 1 + FOLDS) of
    ``words`` (w,), times the ``rarity`` of all hashed ones: first those by all examples, then those
    by all but a fold, which ``fold`` (m,) has of each. Of its cut, ``score`` and ``key`` (1,) are
    the last that pass, and ``lowest`` (1 + FOLDS,) is the lowest finite score by each fit among as
    many; infinite where there is none."""

    words: NDArray[np.int64]
    weights: NDArray[np.float32]
    rarity: NDArray[Any]
    fold: NDArray[np.int64]
    rows: NDArray[np.int64]
    score: NDArray[np.float32] = np.empty(0, np.float32)
    key: NDArray[np.int64] = np.empty(0, np.int64)
    lowest: NDArray[np.float64] = np.empty(0)

    def scores(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores of texts (n, 1 + FOLDS), of one without words the lowest."""
        vectors = rarity_of(self.rarity).transform(count_words(texts))
        scores = np.asarray(vectors[:, self.words] @ self.weights)
        scores[vectors.getnnz(axis=1) == 0] = -np.inf
        return scores

    def score_blocks(self, texts: Iterable[str]) -> Iterator[ScreenScores]:
        """Yield the scores of some texts after others."""
        remaining = iter(texts)
        while block := [*islice(remaining, SCREEN_BLOCK)]:
            yield ScreenScores(np.array([*map(text_key, block)], np.int64), self.scores(block))

    def cut_at(self, most: float, blocks: Iterable[ScreenScores]) -> Self:
        """Return the screen that lets the ``most`` of its corpus pass, by the scores of it."""
        count = self.count(most)
        keys, scores = highest(blocks, count)
        last = np.lexsort((keys, -scores[:, 0]))[:count][-1:]
        count = min(count, len(keys))
        best = np.partition(scores, -count, axis=0)[-count:]
        lowest = np.where(np.isfinite(best), best, np.inf).min(axis=0).astype(np.float64)
        return self._replace(score=scores[last, 0], key=keys[last], lowest=lowest)

    def count(self, most: float) -> int:
        """Return how many of its rows may pass; ``most`` below 1 is a share."""
        rows = int(self.rows[0])
        return int(min(rows, most if most >= 1 else np.ceil(most * rows)))

    def passing(self, scored: ScreenScores) -> Mask:
        """Tell which rows pass (n,)."""
        first = scored.scores[:, 0]
        return (first > self.score) | ((first == self.score) & (scored.keys <= self.key))

    def margins(self, examples: Sequence[str], unseen: Sequence[str] = ()) -> NDArray[np.float64]:
        """Return by how much the examples, by the fits without them, and then ``unseen`` texts are
        above the lowest score that passes; a text without words as the lowest one."""
        column = np.concatenate([1 + self.fold, np.zeros(len(unseen), np.int64)])
        scores = self.scores([*examples, *unseen])[np.arange(len(column)), column]
        margin = scores.astype(np.float64) - self.lowest[column]
        return np.maximum(margin, margin[np.isfinite(margin)].min(initial=0.0))


def text_key(text: str) -> int:
    """Return the key of a text, 63 bits."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def draw_sample(texts: Iterable[str]) -> tuple[list[str], int]:
    """Return a sample of the distinct texts, those whose hashes are lowest, in the order of these,
    and how many texts there were."""
    drawn: dict[int, str] = {}
    limit, rows = 1 << 63, 0
    for text in texts:
        rows += 1
        if text and (key := text_key(text)) <= limit:
            drawn[key] = text
            if len(drawn) >= 2 * SCREEN_SAMPLE:
                drawn = dict(sorted(drawn.items())[:SCREEN_SAMPLE])
                limit = max(drawn)
    return [text for _, text in sorted(drawn.items())[:SCREEN_SAMPLE]], rows


def screen_texts(examples: Sequence[str], texts: Iterable[str], most: float) -> tuple[Screen, Mask]:
    """Return a screen that is fitted to the examples and a sample of ``texts``, and which of these
    pass (n,): the ``most``, or below 1 that share."""
    screen = fit_screen(examples, *draw_sample(texts))
    blocks = [*screen.score_blocks(texts)]
    screen = screen.cut_at(most, blocks)
    return screen, np.concatenate([*map(screen.passing, blocks)])


def fit_screen(examples: Sequence[str], sample: Sequence[str], rows: int) -> Screen:
    """Fit a screen to the examples against a ``sample`` of a corpus of so many ``rows``."""
    from scipy.sparse import vstack

    counts, m = count_words([*examples, *sample]), len(examples)
    rarity = TfidfTransformer(sublinear_tf=True).fit(counts)
    words = np.unique(counts.indices).astype(np.int64)
    vectors = rarity.transform(counts)[:, words]
    domain, corpus = vectors[:m], vectors[m:]

    def fitted(inside: Mask) -> NDArray[np.float32]:
        labels = np.repeat([1, 0], [inside.sum(), len(sample)])
        model = LogisticRegression(class_weight="balanced", max_iter=200)
        model.fit(vstack([domain[inside], corpus]), labels)
        return np.asarray(model.coef_[0], np.float32)

    # Copies of a text are left out with it.
    every = np.ones(m, dtype=bool)
    roots = find_duplicates(examples, every, threshold=COPIES, words=SHINGLE).roots
    distinct, cluster = np.unique(roots, return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(distinct)) % FOLDS)[cluster]
    fits = [every, *(fold != number for number in range(FOLDS))]
    weights = np.stack([fitted(inside) for inside in fits], axis=1)
    return Screen(words, weights, rarity.idf_, fold, np.array([rows]))


def rarity_of(weights: NDArray[Any]) -> TfidfTransformer:
    """Return what weighs words by how rare they are, as that which was fitted."""
    rarity = TfidfTransformer(sublinear_tf=True)
    rarity.idf_ = weights
    return rarity


def highest(blocks: Iterable[ScreenScores], most: int) -> ScreenScores:
    """Return some rows of the blocks, among which are the ``most`` that any fit scores highest."""
    keys, scores = np.empty(0, np.int64), np.empty((0, 1 + FOLDS), np.float32)
    for block in blocks:
        keys = np.concatenate([keys, block.keys])
        scores = np.concatenate([scores, block.scores])
        if len(keys) >= 2 * most:
            is_high = (scores >= np.partition(scores, -most, axis=0)[-most]).any(axis=1)
            keys, scores = keys[is_high], scores[is_high]
    return ScreenScores(keys, scores)
