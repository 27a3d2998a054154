"""Relearning: which texts, each step, and what is measured between."""

import numpy as np
import pytest
import torch

from mamushi.lm import device, loading
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import subset
from mamushi_extras.left.relearning import choose_texts, relearn
from tests.support.models import ENDS_FROZEN, FAMILIES, model, token_set, training_of


def test_texts_are_drawn_by_the_seed_alone_among_those_with_something_to_predict() -> None:
    texts = token_set(60)
    first = choose_texts(texts, 8, seed=1)
    np.testing.assert_array_equal(first, choose_texts(texts, 8, seed=1))
    assert first.tolist() != choose_texts(texts, 8, seed=2).tolist()
    assert first.tolist() == sorted(set(first.tolist())) and len(first) == 8
    assert set(choose_texts(texts, 4, seed=1)) < set(first)
    useful = np.flatnonzero(texts.lengths > 1)
    assert 0 < len(useful) < 60
    np.testing.assert_array_equal(choose_texts(texts, 1000, seed=0), useful)


@pytest.mark.parametrize("family", FAMILIES)
def test_held_out_texts_are_measured_before_and_after_each_number_of_steps(family: str) -> None:
    """Each forget text too, so that a share of the gap has an interval over texts."""
    language_model, texts, held_out = model(family, layers=2), token_set(30, seed=3), token_set()
    freeze(language_model, training_of(ENDS_FROZEN | {"trained_blocks": 1}))
    accelerator = device.accelerator("fp32")
    loading.place_model(language_model, "fp32", torch.device("cpu"))

    def perplexities() -> list[float]:
        nll = text_nll(language_model, held_out, 1000, accelerator)
        return list(perplexity_table(nll, held_out.domains)["perplexity"])

    before = perplexities()
    curve, of_texts = relearn(
        language_model,
        subset(texts, choose_texts(texts, 5, seed=0)),
        held_out,
        {"steps": [4, 1], "batch_size": 3, "learning_rate": 1e-3},
        seed=7,
        accelerator=accelerator,
        batch_tokens=1000,
    )
    assert (curve["step"], curve["examples"]) == ([0, 1, 4], [5] * 3)
    assert [curve["ppl_forget"][0], curve["ppl_retain"][0]] == before
    assert [curve["ppl_forget"][-1], curve["ppl_retain"][-1]] == perplexities() != before
    assert of_texts["id"] == held_out.ids.tolist() * 2
    assert of_texts["step"] == [1] * len(held_out) + [4] * len(held_out)
    nll, tokens = (np.array(of_texts[name]).reshape(2, -1) for name in ("nll", "tokens"))
    for domain in ("forget", "retain"):
        of = held_out.domains == domain
        mean = nll[:, of].sum(1) / tokens[:, of].sum(1)
        np.testing.assert_allclose(np.exp(mean), curve[f"ppl_{domain}"][1:])
