"""Repetition, distinct n-grams and likeness to another text, by hand and by other programs."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from mamushi.evaluation.texts import WINDOW, distinct, edit_similarity, repetition, rouge_l


@pytest.mark.parametrize(
    ("tokens", "window", "expected"),
    [
        ([], WINDOW, 0.0),
        ([5], WINDOW, 0.0),
        ([1, 2, 3, 4], WINDOW, 0.0),
        ([7, 7, 7, 7], WINDOW, 3 / 4),
        ([1, 2, 1, 2], WINDOW, 2 / 4),
        # The first 1 is two tokens before the second: within a window of two, not of one.
        ([1, 2, 1], 2, 1 / 3),
        ([1, 2, 1], 1, 0.0),
        ([1, 1, 2, 2, 1], 1, 2 / 5),
        ([1, *range(100, 115), 1], 16, 1 / 17),
        ([1, *range(100, 116), 1], 16, 0.0),
    ],
)
def test_repetition(tokens: list[int], window: int, expected: float) -> None:
    assert repetition(tokens, window) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("tokens", "n", "expected"),
    [
        ([1, 2, 3], 1, 1.0),
        ([1, 1, 1, 1], 1, 1 / 4),
        ([1, 1, 1, 1], 2, 1 / 3),
        ([1, 1, 1, 1], 3, 1 / 2),
        # 12, 21, 12, 23: the first and the third are one.
        ([1, 2, 1, 2, 3], 2, 3 / 4),
        ([1, 2], 3, 1.0),
        ([], 1, 1.0),
    ],
)
def test_distinct(tokens: list[int], n: int, expected: float) -> None:
    assert distinct(tokens, n) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("said", "truth", "rouge", "similarity"),
    [
        ("", "", 0.0, 1.0),
        ("abc", "", 0.0, 0.0),
        ("", "abc", 0.0, 0.0),
        ("a b c", "a b c", 1.0, 1.0),
        ("A, b: c!", "a b c", 1.0, 4 / 8),
        # The longest common subsequence is `b d`: 2 of 3 and 2 of 4 words.
        ("b x d", "a b c d", 2 * 2 / 7, 4 / 7),
        ("d c b a", "a b c d", 2 / 8, 3 / 7),
        ("kitten", "sitting", 0.0, 4 / 7),
    ],
)
def test_likeness(said: str, truth: str, rouge: float, similarity: float) -> None:
    assert rouge_l(said, truth) == pytest.approx(rouge)
    assert edit_similarity(said, truth) == pytest.approx(similarity)


def random_texts(count: int) -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(0)
    for _ in range(count):
        one, two = (" ".join(rng.choice([*"abcd", "Ef", "g1"], rng.integers(0, 12))) for _ in "12")
        yield one, two


def test_rouge_l_is_that_of_the_published_package() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for said, truth in random_texts(200):
        assert rouge_l(said, truth) == pytest.approx(scorer.score(truth, said)["rougeL"].fmeasure)


def test_edit_similarity_is_that_of_the_textbook() -> None:
    for said, truth in random_texts(50):
        table = [[i + j for j in range(len(truth) + 1)] for i in range(len(said) + 1)]
        for i, j in product(range(1, len(said) + 1), range(1, len(truth) + 1)):
            swapped = table[i - 1][j - 1] + (said[i - 1] != truth[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, swapped)
        longer = max(len(said), len(truth))
        expected = 1 - table[-1][-1] / longer if longer else 1.0
        assert edit_similarity(said, truth) == pytest.approx(expected)
