"""What a loss is given: sums of NLLs per text, and SalUn's random labels."""

import numpy as np
import pytest
import torch

from mamushi.lm.batches import collate
from mamushi.unlearning.objective import TextLoss, random_labels
from tests.support.models import FAMILIES, VOCABULARY, model, token_set


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shared", [True, False])
def test_text_loss_sums_the_nll_of_the_labels(family: str, shared: bool) -> None:
    texts, language_model = token_set(6), model(family)
    rng = np.random.default_rng(5)
    rows = [texts[row] for row in range(len(texts))]
    labels = [rng.integers(0, VOCABULARY, len(row)).astype(np.int32) for row in rows]
    batch = collate(rows, torch.device("cpu"), shared=shared, labels=labels)
    found = TextLoss(language_model)(batch)
    assert found.dtype == torch.float32
    for row, label, value in zip(rows, labels, found.tolist(), strict=True):
        with torch.no_grad():
            logits = language_model(torch.from_numpy(row.astype(np.int64))[None]).logits[0]
        odds = logits.double().numpy()
        expected = 0.0
        for place in range(len(row) - 1):
            expected += np.log(np.exp(odds[place]).sum()) - odds[place, label[place + 1]]
        assert value == pytest.approx(expected, rel=1e-5, abs=1e-6)


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
