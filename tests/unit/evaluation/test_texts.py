"""Repetition and distinct n-grams by hand."""

import pytest

from mamushi.evaluation.texts import WINDOW, distinct, repetition


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
