"""Relearning: which texts, each step by hand, and what is measured between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from mamushi.lm import device
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import TokenSet, subset
from mamushi.unlearning.relearning import Relearned, choose, relearn
from tests.support.models import FAMILIES, model, token_set

SETTINGS: dict[str, Any] = {"steps": [4, 1, 2], "batch_size": 3, "learning_rate": 1e-3}
LAST = {
    "trained_blocks": 1,
    "train_input_embedding": False,
    "train_output_head": False,
}


def few(examples: int = 5) -> TokenSet:
    texts = token_set(30, seed=3)
    return subset(texts, choose(texts, examples, seed=0))


def opened(family: str) -> PreTrainedModel:
    """A model of two blocks of which the last is trained."""
    language_model = model(family, layers=2)
    freeze(language_model, LAST)
    return device.place(language_model, "fp32", torch.device("cpu"))


def learned(
    language_model: PreTrainedModel,
    texts: TokenSet | None = None,
    **changes: Any,
) -> Relearned:
    return relearn(
        language_model,
        few() if texts is None else texts,
        token_set(),
        SETTINGS | changes,
        seed=7,
        accelerator=device.accelerator("fp32"),
        batch_tokens=1000,
    )


def perplexities(language_model: PreTrainedModel) -> list[float]:
    held_out = token_set()
    nll = text_nll(language_model, held_out, 1000, device.accelerator("fp32"))
    found: list[float] = list(perplexity_table(nll, held_out.domains)["perplexity"])
    return found


def test_texts_are_drawn_by_the_seed_alone_among_those_with_something_to_predict() -> None:
    texts = token_set(60)
    first = choose(texts, 8, seed=1)
    np.testing.assert_array_equal(first, choose(texts, 8, seed=1))
    assert first.tolist() != choose(texts, 8, seed=2).tolist()
    assert first.tolist() == sorted(set(first.tolist())) and len(first) == 8
    assert set(choose(texts, 4, seed=1)) < set(first)
    useful = np.flatnonzero(texts.lengths > 1)
    assert 0 < len(useful) < 60
    np.testing.assert_array_equal(choose(texts, 1000, seed=0), useful)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_columns_begin_with_what_there_was_before(family: str) -> None:
    language_model = opened(family)
    before = perplexities(language_model)
    found = learned(language_model).curve
    assert found["step"] == [0, 1, 2, 4]
    assert found["examples"] == [5] * 4
    assert [found["ppl_forget"][0], found["ppl_retain"][0]] == before
    assert perplexities(language_model) == [found["ppl_forget"][-1], found["ppl_retain"][-1]]


def test_each_text_is_kept_after_each_step_that_is_measured() -> None:
    """So that a share of the gap has an interval over texts: the perplexity is made of them."""
    found, held_out = learned(opened("llama"), steps=[4, 1]), token_set()
    forget = held_out.ids[held_out.domains == "forget"].tolist()
    assert found.texts["id"] == forget * 2
    assert found.texts["step"] == [1] * len(forget) + [4] * len(forget)
    nll, tokens = (np.array(found.texts[name]).reshape(2, -1) for name in ("nll", "tokens"))
    mean = nll.sum(axis=1) / tokens.sum(axis=1)
    np.testing.assert_allclose(np.exp(mean), found.curve["ppl_forget"][1:])
