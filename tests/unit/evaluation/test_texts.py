"""Repetition, by hand."""

import pytest

from mamushi.evaluation.texts import WINDOW, repetition


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
