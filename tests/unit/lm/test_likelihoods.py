"""What a model makes of each text, against its own logits, text by text."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mamushi.lm import device
from mamushi.lm.loss import ROWS
from mamushi.lm.perplexity import text_statistics
from tests.support.models import FAMILIES, model, token_set

LEAST = 0.3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch_tokens", [16, ROWS])
def test_statistics_are_those_of_the_formulas(family: str, batch_tokens: int) -> None:
    language_model, texts = model(family), token_set(12)
    accelerator = device.accelerator("fp32")
    found = text_statistics(language_model, texts, batch_tokens, accelerator, LEAST)
    for row in range(len(texts)):
        ids = torch.tensor(texts[row].astype(np.int64))[None]
        with torch.inference_mode():
            logits = language_model(ids).logits[0].double()
        true, standard = [], []
        for place in range(len(texts[row]) - 1):
            p = torch.softmax(logits[place], 0).numpy()
            token = texts[row][place + 1]
            mean = sum(q * np.log(q) for q in p)
            spread = np.sqrt(sum(q * (np.log(q) - mean) ** 2 for q in p))
            true.append(np.log(p[token]))
            standard.append((np.log(p[token]) - mean) / spread)
        if not true:
            assert all(np.isnan(values[row]) for values in found.values())
            continue
        k = max(1, int(len(true) * LEAST))
        expected = (-sum(true), np.mean(sorted(true)[:k]), np.mean(sorted(standard)[:k]))
        names = ("nll", "min_k", "min_k_plus")
        assert [found[name][row] for name in names] == pytest.approx(expected, rel=1e-4)


def test_a_token_that_cannot_be_is_no_part_of_the_mean() -> None:
    """A model that rules tokens out, as soft-capped or masked heads do."""
    language_model, texts = model("llama"), token_set(6)
    head = language_model.get_output_embeddings()
    head.register_forward_hook(
        lambda module, given, out: out.masked_fill(torch.arange(out.shape[-1]) >= 50 - 1, -np.inf)
    )
    texts.tokens[texts.tokens == 49] = 0
    found = text_statistics(language_model, texts, 64, device.accelerator("fp32"), LEAST)
    assert np.isfinite(found["min_k_plus"][texts.lengths > 1]).all()
