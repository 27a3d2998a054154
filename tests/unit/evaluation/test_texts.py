"""Repetition, distinct n-grams and likeness to another text, by hand and by other programs."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from mamushi.evaluation.texts import WINDOW, distinct, edit_similarity, repetition, rouge_l


@pytest.mark.parametrize(
    ("tokens", "window", "expected"),
    [
        ([], 16, 0.0),
        ([5], 16, 0.0),
        ([1, 2, 3, 4], 16, 0.0),
        ([7, 7, 7, 7], 16, 3 / 4),
        ([1, 2, 1, 2], 16, 2 / 4),
        # The first 1 is two tokens before the second: within a window of two, not of one.
        ([1, 2, 1], 2, 1 / 3),
        ([1, 2, 1], 1, 0.0),
        ([1, 1, 2, 2, 1], 1, 2 / 5),
    ],
)
def test_repetition(tokens: list[int], window: int, expected: float) -> None:
    assert repetition(tokens, window) == pytest.approx(expected)


def test_the_window_is_sixteen_tokens() -> None:
    between = list(range(100, 100 + WINDOW - 1))
    assert WINDOW == 16
    assert repetition([1, *between, 1]) == pytest.approx(1 / 17)
    assert repetition([1, *between, 99, 1]) == 0.0


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


def test_windows_and_grams_have_a_token_or_more() -> None:
    with pytest.raises(ValueError, match="window"):
        repetition([1], 0)
    with pytest.raises(ValueError, match="n must be"):
        distinct([1], 0)


@pytest.mark.parametrize(
    ("said", "truth", "expected"),
    [
        ("", "", 0.0),
        ("a b", "", 0.0),
        ("a b c", "a b c", 1.0),
        ("A, b: c!", "a b c", 1.0),
        # The longest common subsequence is `b d`: 2 of 3 and 2 of 4 words.
        ("b x d", "a b c d", 2 * 2 / 7),
        ("d c b a", "a b c d", 2 / 8),
    ],
)
def test_rouge_l(said: str, truth: str, expected: float) -> None:
    assert rouge_l(said, truth) == pytest.approx(expected)


def random_texts(count: int) -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(0)
    for _ in range(count):
        one, two = (" ".join(rng.choice([*"abcd", "Ef", "g1"], rng.integers(0, 12))) for _ in "12")
        yield one, two


def test_rouge_l_is_that_of_the_published_package() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for said, truth in random_texts(200):
        assert rouge_l(said, truth) == pytest.approx(scorer.score(truth, said)["rougeL"].fmeasure)


@pytest.mark.parametrize(
    ("said", "truth", "expected"),
    [
        ("", "", 1.0),
        ("", "abc", 0.0),
        ("abc", "", 0.0),
        ("abc", "abc", 1.0),
        ("kitten", "sitting", 4 / 7),
    ],
)
def test_edit_similarity(said: str, truth: str, expected: float) -> None:
    assert edit_similarity(said, truth) == pytest.approx(expected)


def test_edit_similarity_is_that_of_the_textbook() -> None:
    for said, truth in random_texts(50):
        table = [[i + j for j in range(len(truth) + 1)] for i in range(len(said) + 1)]
        for i, j in product(range(1, len(said) + 1), range(1, len(truth) + 1)):
            swapped = table[i - 1][j - 1] + (said[i - 1] != truth[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, swapped)
        longer = max(len(said), len(truth))
        expected = 1 - table[-1][-1] / longer if longer else 1.0
        assert edit_similarity(said, truth) == pytest.approx(expected)
