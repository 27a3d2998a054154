"""Texts that count by degrees: exact against a padded loop, and what editing does to a training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from mamushi.lm import device, tokens
from mamushi.lm.batches import steps
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet, subset
from tests.support.gradients import exact, step_gradients
from tests.support.models import FAMILIES, TRAINING, model, token_set

SPANS = {"t003": [(0, 2), (4, 5)], "t006": [(1, 2)]}


def weighed(texts: TokenSet, weights: dict[str, float]) -> TokenSet:
    """Texts of which each token counts as its text's id says; of others 1."""
    by_text = np.array([weights.get(name, 1.0) for name in texts.ids], np.float32)
    return replace(texts, weights=np.repeat(by_text, texts.lengths))


def both(texts: TokenSet) -> TokenSet:
    """Weights of two texts, one of them 0, and masked spans in others."""
    some = weighed(texts, {"t000": 0.25, "t001": 0.0, "t002": 0.7})
    return replace(some, weights=some.weights * tokens.masked(texts, SPANS).weights)


def padded(family: str, texts: TokenSet) -> tuple[float, dict[str, torch.Tensor]]:
    """The step's loss and gradients from one padded batch and a loop over its predicted tokens."""
    reference = exact(model(family))
    freeze(reference, TRAINING)
    ids = torch.zeros(len(texts), int(texts.lengths.max()), dtype=torch.int64)
    real = torch.arange(ids.shape[1])[None] < torch.from_numpy(texts.lengths)[:, None]
    ids[real] = torch.from_numpy(texts.tokens.astype(np.int64))
    logits = reference(input_ids=ids, attention_mask=real.long()).logits
    total, weight = torch.zeros((), dtype=torch.float64), 0.0
    for row in range(len(texts)):
        for place in range(1, len(texts[row])):
            own = float(texts.weights_of(row)[place])
            # What other trainers are given for a token that is not to be learned.
            label = ids[row, place] if own else torch.tensor(-100)
            nll = functional.cross_entropy(
                logits[row, place - 1], label, reduction="sum", ignore_index=-100
            )
            total, weight = total + own * nll, weight + own
    (total / weight).backward()
    found = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    return float(total.detach()) / weight, found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edit", [both, lambda texts: tokens.masked(texts, SPANS)])
def test_a_weighted_step_is_that_of_a_padded_loop(family: str, edit: Any) -> None:
    texts = edit(token_set(9, longest=9, seed=4))
    expected, gradients = padded(family, texts)
    for micro in (9, 2):
        loss, found = step_gradients(family, micro, device.accelerator("fp32"), texts)
        assert loss == pytest.approx(expected, rel=1e-6)
        for name, gradient in gradients.items():
            torch.testing.assert_close(found[name], gradient, rtol=1e-6, atol=1e-9)


def test_mass_is_what_a_training_counts_texts_by() -> None:
    texts = token_set(6, longest=9, seed=4)
    assert tokens.mass(texts).tolist() == [1.0] * 6
    every = weighed(texts, {"t001": 0.0, "t002": 0.5})
    assert tokens.mass(every).tolist() == [1, 0, 0.5, 1, 1, 1]
    some = subset(every, np.array([2, 0]))
    assert tokens.mass(some).tolist() == [0.5, 1]
    assert some.weights_of(0).tolist() == [0.5] * len(texts[2])
    longest = int(texts.lengths.argmax())
    name, predicted = str(texts.ids[longest]), int(texts.lengths[longest]) - 1
    # The first token is not predicted, masked or not.
    found = tokens.mass(tokens.masked(texts, {name: [(0, 3)]}))
    assert found[longest] == pytest.approx(1 - 2 / predicted)
    assert found.sum() == pytest.approx(6 - 2 / predicted)
    assert steps(12, 4, 2.0) == steps(float(np.full(24, 0.5).sum()), 4, 2.0) == 6
