"""Tiny models: the traits of each family, tokenizers without loss, pretraining that repeats."""

import numpy as np
import pytest
import torch

from mamushi.lm import tiny
from tests.support.models import SIZES

PRETRAINING = {
    "epochs": 4.0,
    "batch_size": 4,
    "learning_rate": 1e-2,
    "max_length": 16,
}
WORDS = ["river", "stone", "engine", "paper", "light", "seven", "green", "under"]
TEXTS = [
    " ".join(np.random.default_rng(i).choice(WORDS, size=12, p=np.arange(1, 9) / 36))
    for i in range(40)
]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_pretraining_learns_the_words_and_repeats_to_the_bit(family: str) -> None:
    runs, sizes = [], {"family": family, **SIZES, "vocabulary_size": 300}
    for _ in range(2):
        model, tokenizer = tiny.build(sizes, TEXTS, seed=0)
        before = {name: p.clone() for name, p in model.named_parameters()}
        log = tiny.pretrain(model, tokenizer, TEXTS, PRETRAINING, seed=0)
        runs.append((dict(model.named_parameters()), log))
    (one, log), (two, again) = runs
    assert np.mean(log["loss"][-5:]) < log["loss"][0] - 1
    assert log["loss"] == again["loss"]
    assert log["epoch"][-1] == pytest.approx(4.0, abs=0.2)
    for name, parameter in one.items():
        assert torch.equal(two[name], parameter), name
        assert not torch.equal(before[name], parameter), name
    assert not model.training
