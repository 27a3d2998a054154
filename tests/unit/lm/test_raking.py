"""NLL without word frequencies, in worlds whose truth is known, and of models with a constant."""

from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mamushi.lm import device
from mamushi.lm.perplexity import text_nll
from mamushi.lm.raking import FEWEST, Raking, plan_raking, raked_nll
from mamushi.lm.tokens import TokenSet, offsets_of
from tests.support.models import VOCABULARY, model

CPU = device.accelerator("fp32")
Doubles = NDArray[np.float64]
WORDS = 30


def token_set(texts: list[list[int]], domain: str = "forget") -> TokenSet:
    ids = np.array([f"{domain}{i}" for i in range(len(texts))], dtype=object)
    lengths = np.array([len(text) for text in texts])
    return TokenSet(
        ids,
        np.array([domain] * len(texts), dtype=object),
        np.concatenate([np.array(text, np.int32) for text in texts]),
        offsets_of(lengths),
    )


def world(kind: str, seed: int) -> tuple[Doubles, Doubles, Doubles]:
    """Transitions (WORDS, WORDS) of the forget domain, of gold, and of beta 0: ``lexical`` has two
    unigrams, ``transition`` two chains with the same frequencies of words, ``mixed`` both."""
    rng = np.random.default_rng(seed)

    def unigram() -> Doubles:
        return np.tile(rng.dirichlet(np.full(WORDS, 0.5)), (WORDS, 1))

    def cyclic(shift: int) -> Doubles:
        """A chain that goes on by ``shift`` words half of the time; its words are uniform."""
        return 0.5 * np.roll(np.eye(WORDS), shift, axis=1) + 0.5 / WORDS

    forget, retain = (
        (unigram(), unigram())
        if kind == "lexical"
        else (cyclic(1), cyclic(7))
        if kind == "transition"
        else (0.5 * cyclic(1) + 0.5 * unigram(), 0.5 * cyclic(7) + 0.5 * unigram())
    )
    return forget, retain, 0.5 * (forget + retain)


def chain(transitions: Doubles, length: int, rng: np.random.Generator) -> list[int]:
    words = [int(rng.integers(WORDS))]
    while len(words) < length:
        words.append(int(rng.choice(WORDS, p=transitions[words[-1]])))
    return words


def gaps(kind: str, seed: int = 0) -> tuple[float, float]:
    """The whole gap in forget NLL per word, and the deep one, on 60 texts of 40 words."""
    forget, gold, beta0 = world(kind, seed)
    rng = np.random.default_rng(seed + 1)
    held_out = token_set([chain(forget, 40, rng) for _ in range(60)])
    raking = plan_raking(held_out, token_set([chain(forget, 40, rng) for _ in range(60)]), 10**6)
    assert raking is not None
    measured = [nll_of(model, held_out, raking) for model in (gold, beta0)]
    return measured[0][0] - measured[1][0], measured[0][1] - measured[1][1]


def nll_of(transitions: Doubles, texts: TokenSet, raking: Raking) -> tuple[float, float]:
    """Mean NLL of a chain that is its own model, as it is and raked."""
    words = [texts[row] for row in raking.rows]
    before = np.concatenate([text[:-1] for text in words])
    after = np.concatenate([text[1:] for text in words])
    halves = np.repeat(raking.halves, [len(text) - 1 for text in words])
    logits = np.log(transitions[before])
    total = 0.0
    for half, frequencies in enumerate(raking.frequencies):
        inside = halves == half
        columns = torch.from_numpy(logits[inside][:, raking.columns])
        targets = torch.from_numpy(np.searchsorted(raking.columns, after[inside]))
        total += float(raked_nll(columns, targets, frequencies, CPU).sum())
    return float(-logits[np.arange(len(after)), after].mean()), total / len(after)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("lexical", -1e-6, 1e-6), ("transition", 0.98, 1.02), ("mixed", 0.2, 0.9)],
)
def test_deep_is_the_gap_of_word_order_alone(kind: str, least: float, most: float) -> None:
    whole, deep = gaps(kind)
    assert whole > 0.3 and least < deep / whole < most


def test_a_constant_on_the_logits_counts_nothing_and_raking_changes_no_perplexity() -> None:
    forget, retain, _ = world("mixed", 0)
    rng = np.random.default_rng(2)
    held_out = token_set([chain(forget, 12, rng) for _ in range(40)])
    raking = plan_raking(held_out, token_set([chain(retain, 12, rng) for _ in range(40)]), 10**6)
    assert raking is not None
    language_model = model("llama")
    plain = text_nll(language_model, held_out, 100, CPU, raking)
    np.testing.assert_array_equal(plain.nll, text_nll(language_model, held_out, 100, CPU).nll)
    bias = 2.0 * torch.randn(VOCABULARY, generator=torch.manual_seed(1))
    language_model.get_output_embeddings().bias = torch.nn.Parameter(bias)
    raised = text_nll(language_model, held_out, 100, CPU, raking)
    assert plain.deep is not None and raised.deep is not None
    assert np.abs(raised.nll - plain.nll).mean() > 1.0
    np.testing.assert_allclose(raised.deep, plain.deep, rtol=2e-5)


def test_after_raking_the_mean_prediction_is_what_was_asked_for() -> None:
    """By the gradient: of the mean NLL to the constant of a token it is mean less frequency."""
    logits = torch.randn(80, 9, dtype=torch.float64, generator=torch.manual_seed(0))
    frequencies = np.random.default_rng(0).dirichlet(np.ones(9))
    targets = torch.zeros(80, dtype=torch.int64)
    raked = raked_nll(logits, targets, frequencies, CPU)
    # A token's share at a position is e^-NLL, whichever tokens came.
    shares = [raked_nll(logits, targets + v, frequencies, CPU).neg().exp() for v in range(9)]
    torch.testing.assert_close(raked, -shares[0].log())
    np.testing.assert_allclose([float(share.mean()) for share in shares], frequencies, atol=1e-6)


def test_texts_are_sampled_by_their_ids_and_few_are_not_raked() -> None:
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 9, 11).tolist() for _ in range(60)]
    forget, retain = token_set(texts), token_set(texts, "retain")
    few = plan_raking(forget, forget, 10 * FEWEST)
    more = plan_raking(forget, forget, 10 * 40)
    assert few is not None and more is not None
    assert len(few.rows) == FEWEST and set(few.rows) < set(more.rows)
    assert plan_raking(forget, forget, 10 * FEWEST - 1) is None
    assert plan_raking(retain, forget, 10**6) is None
    np.testing.assert_allclose(more.frequencies.sum(axis=1), 1.0)
    # The frequencies of a half come from the other one, and from the inference section.
    before = Counter(word for text in texts for word in text[1:])
    other = Counter(int(w) for row in more.rows[more.halves == 1] for w in forget[row][1:])
    words = more.columns.tolist()
    prior = sum(before[word] + 0.5 for word in words)
    counts = np.array([other[word] + 1000.0 * (before[word] + 0.5) / prior for word in words])
    np.testing.assert_allclose(more.frequencies[0], counts / counts.sum())
