"""Perplexity and embeddings against the plainest computation: one text, one token at a time."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm import device
from mamushi.lm.embed import embed
from mamushi.lm.perplexity import TextNll, perplexity_table
from mamushi.lm.tokens import TokenSet
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


def embedded(
    language_model: PreTrainedModel,
    texts: TokenSet,
    layers: list[int],
    pooling: str = "mean",
    skip_first: bool = False,
) -> NDArray[np.float16]:
    how = {"pooling": pooling, "layers": layers, "skip_first": skip_first, "batch_tokens": 40}
    return embed(language_model, texts, **how, accelerator=device.accelerator("fp32"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("pooling", "layers", "skip_first"),
    [
        *(("mean", [-1], False), ("mean", [-1], True), ("last", [-1], True)),
        ("mean", [1, -1], True),  # from one forward pass
    ],
)
def test_embeddings_equal_an_unbatched_forward(
    family: str, pooling: str, layers: list[int], skip_first: bool
) -> None:
    language_model, texts = model(family), token_set()
    assert {1, 2} <= set(texts.lengths)
    found = embedded(language_model, texts, layers, pooling, skip_first)
    assert found.shape[:2] == (len(layers), len(texts))
    for i in range(len(texts)):
        ids = torch.from_numpy(texts[i].astype(np.int64))[None]
        with torch.no_grad():
            hidden = language_model.base_model(ids, output_hidden_states=True).hidden_states
        for layer, vectors in zip(layers, found, strict=True):
            state = hidden[layer][0].numpy()
            # A text that is its BOS alone is that state.
            own = state[1:] if skip_first and len(state) > 1 else state
            expected = own.mean(axis=0) if pooling == "mean" else state[-1]
            np.testing.assert_allclose(vectors[i], expected, rtol=2e-3, atol=2e-3)
