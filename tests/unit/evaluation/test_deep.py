"""The share of the gap without word frequencies: its interval, in a world whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mamushi.evaluation.intervals import Effect, contrast
from mamushi.lm import device
from mamushi.lm.raking import plan_raking, raked_nll
from mamushi.lm.tokens import TokenSet, offsets_of

Doubles = NDArray[np.float64]
CPU = device.accelerator("fp32")
WORDS, LENGTH, SEEDS = 20, 25, 4
ARMS = {"beta0": 0.0, "arm": 0.8, "gold": 1.0}
"""How much of the forget domain's order of words is gone from a model."""


def transitions(gone: float, spread: Doubles) -> Doubles:
    """A chain (WORDS, WORDS) whose order is that of the forget domain or, where it is gone, none; a
    training's own chance is a ``spread`` of its logits, words above others included."""
    order = 0.5 * np.roll(np.eye(WORDS), 1, axis=1) + 0.5 / WORDS
    logits = np.log((1 - 0.9 * gone) * order + 0.9 * gone / WORDS) + spread
    return np.asarray(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))


def texts_of(number: int, rng: np.random.Generator, prefix: str) -> TokenSet:
    """Texts of the forget domain, some of which keep its order more than others do."""
    forget = np.cumsum(transitions(0.0, np.zeros((WORDS, WORDS))), axis=1)
    loose = rng.random(number) * 0.2
    words = rng.integers(0, WORDS, (number, LENGTH))
    for place in range(1, LENGTH):
        drawn = (rng.random((number, 1)) < forget[words[:, place - 1]]).argmax(axis=1)
        kept = rng.random(number) >= loose
        words[kept, place] = drawn[kept]
    ids = np.array([f"{prefix}{i}" for i in range(number)], dtype=object)
    domains = np.array(["forget"] * number, dtype=object)
    lengths = np.full(number, LENGTH)
    return TokenSet(ids, domains, words.ravel().astype(np.int32), offsets_of(lengths))


def share(number: int, seeds: int, rng: np.random.Generator) -> Effect:
    """What the arm recovers of the deep gap, on so many texts and seeds."""
    held_out = texts_of(number, rng, f"t{rng.integers(1 << 30)}-")
    raking = plan_raking(held_out, texts_of(300, rng, "i"), 10**9)
    assert raking is not None and len(raking.rows) == number
    words = held_out.tokens.reshape(number, LENGTH)
    halves = np.repeat(raking.halves, LENGTH - 1)
    before, after = words[:, :-1].ravel(), words[:, 1:].ravel()
    nll: dict[str, list[Doubles]] = {name: [] for name in ARMS}
    for _ in range(seeds):
        for name, gone in ARMS.items():
            own = 0.05 * rng.normal(size=(WORDS, WORDS)) + 0.1 * rng.normal(size=WORDS)
            logits = torch.from_numpy(np.log(transitions(gone, own))[before])
            raked = np.empty(len(after))
            for half, frequencies in enumerate(raking.frequencies):
                inside = halves == half
                targets = torch.from_numpy(np.searchsorted(raking.columns, after[inside]))
                columns = logits[inside][:, raking.columns]
                raked[inside] = raked_nll(columns, targets, frequencies, CPU).numpy()
            nll[name].append(raked.reshape(number, -1).sum(axis=1))
    arm, beta0, gold = (np.array(nll[name]) for name in ("arm", "beta0", "gold"))
    return contrast(arm, beta0, np.full(number, LENGTH - 1.0), gap=(beta0, gold))


@pytest.mark.slow
def test_the_interval_of_the_deep_share_holds_the_truth() -> None:
    truth = share(2000, 60, np.random.default_rng(0)).estimate
    assert 0.2 < truth < 0.6
    drawn = [share(80, SEEDS, np.random.default_rng([1, draw])) for draw in range(200)]
    held = sum(effect.low <= truth <= effect.high for effect in drawn)
    assert held >= 0.93 * 200 - 8  # three standard errors of 200 draws
    assert np.median([effect.high - effect.low for effect in drawn]) < 0.5
