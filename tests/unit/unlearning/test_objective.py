"""What a loss is given: sums of NLLs per text, and SalUn's random labels."""

import numpy as np
import pytest

from mamushi.unlearning.objective import random_labels


@pytest.mark.parametrize("true", [0, 4, 9])
def test_random_labels_are_uniform_over_the_others(true: int) -> None:
    tokens = np.full(90_000, true, dtype=np.int32)
    labels = random_labels(tokens, np.arange(10), (), [0, 0, true])
    np.testing.assert_array_equal(labels, random_labels(tokens, np.arange(10), (), [0, 0, true]))
    assert (random_labels(tokens, np.arange(10), (), [0, 1, true]) != labels).mean() > 0.5
    counts = np.bincount(labels, minlength=10)
    assert counts[true] == 0
    others = np.delete(counts, true)
    # Chi-square with 8 degrees of freedom: above 26.1 in one of 1000 fair draws.
    assert ((others - 10_000) ** 2 / 10_000).sum() < 26.1


def test_random_labels_are_tokens_that_there_are() -> None:
    """A vocabulary with a gap, as of a head that is larger than the tokenizer."""
    there = np.array([0, 1, 2, 3, 7, 8])
    tokens = there.astype(np.int32).repeat(2000)
    labels = random_labels(tokens, there, (), [1, 2, 3])
    assert (labels != tokens).all()
    for token in there:
        others = np.bincount(labels[tokens == token], minlength=10)
        assert set(np.flatnonzero(others)) == {*there.tolist()} - {token}
        assert others[others > 0].min() > 300
