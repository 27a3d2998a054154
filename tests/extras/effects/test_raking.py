"""NLL without word frequencies: what a constant of each word counts, and what is sampled."""

from collections import Counter

import numpy as np
import torch

from mamushi.lm import device
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, concat, offsets_of
from mamushi_extras.effects.raking import FEWEST, LogitTables, plan_rakings, raked_nll
from tests.support.models import VOCABULARY, model

CPU = device.accelerator("fp32")
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


def drawn(texts: int, length: int, seed: int) -> list[list[int]]:
    """Texts of words with frequencies of their own."""
    rng = np.random.default_rng(seed)
    frequencies = rng.dirichlet(np.full(WORDS, 0.5))
    return rng.choice(WORDS, (texts, length), p=frequencies).tolist()


def test_a_constant_on_the_logits_counts_nothing_and_raking_changes_no_perplexity() -> None:
    held_out = token_set(drawn(40, 12, 0))
    held_out = concat([held_out, token_set(drawn(30, 12, 2), "retain")])
    others = [token_set(drawn(40, 12, 1)), token_set(drawn(40, 12, 3), "retain")]
    tables = LogitTables(plan_rakings(held_out, concat(others), 10**6), len(held_out), CPU)
    language_model = model("llama")
    plain = text_nll(language_model, held_out, 100, CPU, tables)
    np.testing.assert_array_equal(plain.nll, text_nll(language_model, held_out, 100, CPU).nll)
    bias = 2.0 * torch.randn(VOCABULARY, generator=torch.manual_seed(1))
    language_model.get_output_embeddings().bias = torch.nn.Parameter(bias)
    raised = text_nll(language_model, held_out, 100, CPU, tables)
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
    (few,) = plan_rakings(forget, forget, 10 * FEWEST)
    (more,) = plan_rakings(forget, forget, 10 * 40)
    assert len(few.rows) == FEWEST and set(few.rows) < set(more.rows)
    assert plan_rakings(forget, forget, 10 * FEWEST - 1) == []
    both = plan_rakings(concat([forget, retain]), concat([forget, retain]), 10**6)
    assert [set(plan.rows // 60) for plan in both] == [{0}, {1}]
    np.testing.assert_allclose(more.frequencies.sum(axis=1), 1.0)
    # The frequencies of a half come from the other one, and from the inference section.
    before = Counter(word for text in texts for word in text[1:])
    other = Counter(int(w) for row in more.rows[more.halves == 1] for w in forget[row][1:])
    words = more.columns.tolist()
    prior = sum(before[word] + 0.5 for word in words)
    counts = np.array([other[word] + 1000.0 * (before[word] + 0.5) / prior for word in words])
    np.testing.assert_allclose(more.frequencies[0], counts / counts.sum())
