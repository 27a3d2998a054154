"""Perplexity and embeddings against the plainest computation: one text, one token at a time."""

import math

import numpy as np
import pytest
import torch

from mamushi.errors import UserError
from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm import device
from mamushi.lm.embed import embed
from mamushi.lm.perplexity import TextNll, perplexity_table
from tests.support.models import FAMILIES, model, token_set


def test_perplexity_weighs_tokens_and_not_texts() -> None:
    result = TextNll(np.array([1.0, 9.0, 4.0]), np.array([1, 3, 2]))
    table = perplexity_table(result, np.array([FORGET, FORGET, RETAIN]))
    assert table["nll"] == [10.0 / 4, 2.0]
    assert table["perplexity"] == [math.exp(2.5), math.exp(2.0)]
    assert table["texts"] == [2, 1]
    assert table["tokens"] == [4, 2]
    with pytest.raises(UserError, match="diverged"):
        perplexity_table(TextNll(np.array([math.nan]), np.array([1])), np.array([FORGET]))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("pooling", "layer", "skip_first"),
    [("mean", -1, False), ("mean", -1, True), ("last", -1, True), ("mean", 1, True)],
)
def test_embeddings_equal_an_unbatched_forward(
    family: str, pooling: str, layer: int, skip_first: bool
) -> None:
    language_model, texts = model(family), token_set()
    assert {1, 2} <= set(texts.lengths)
    how = {"pooling": pooling, "layer": layer, "skip_first": skip_first, "batch_tokens": 40}
    vectors = embed(language_model, texts, **how, accelerator=device.accelerator("fp32"))
    for i in range(len(texts)):
        ids = torch.from_numpy(texts[i].astype(np.int64))[None]
        with torch.no_grad():
            hidden = language_model.base_model(ids, output_hidden_states=True).hidden_states
        state = hidden[layer][0].numpy()
        # A text that is its BOS alone is that state.
        own = state[1:] if skip_first and len(state) > 1 else state
        expected = own.mean(axis=0) if pooling == "mean" else state[-1]
        np.testing.assert_allclose(vectors[i], expected, rtol=2e-3, atol=2e-3)
