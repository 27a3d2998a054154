"""The greedy set: its gain is that of a unigram model which is fitted again."""

import dataclasses

import numpy as np
import pytest

from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm.tokens import TokenSet, offsets_of, subset
from mamushi.selection.pool import Pool, rank
from mamushi.selection.selectors import greedy_unigram
from mamushi.selection.unigram import PRIOR, counts, nll, vocabulary

N1, N2, V = 7, 9, 12


def texts(n1: int, n2: int, seed: int) -> TokenSet:
    """Forget texts of more small tokens, retain texts of more large ones, none shorter than 2."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, n1 + n2)
    rows = [
        np.minimum(rng.integers(0, V, n), rng.integers(0, V, n))
        if i < n1
        else rng.integers(0, V, n)
        for i, n in enumerate(lengths)
    ]
    return TokenSet(
        ids=np.array([f"x{i:02}" for i in range(n1 + n2)], dtype=object),
        domains=np.array([FORGET] * n1 + [RETAIN] * n2, dtype=object),
        tokens=np.concatenate(rows).astype(np.int32),
        offsets=offsets_of(lengths),
    )


@pytest.fixture
def pool() -> Pool:
    own = texts(N1, N2, 0)
    return Pool(
        ids=own.ids,
        forget=np.arange(N1 + N2) < N1,
        embeddings=np.zeros((N1 + N2, 1), np.float16),
        tokens=own,
        others=texts(3, 4, 1),
    )


def likelihood(trained: list[np.ndarray], read: list[np.ndarray]) -> float:
    """The mean NLL of tokens by a model of tokens, by the definition."""
    seen = np.concatenate(trained).tolist()
    total = len(seen) + PRIOR * V
    terms = [-np.log((seen.count(w) + PRIOR) / total) for text in read for w in text]
    return float(np.mean(terms))


def gain(pool: Pool, left: list[int], x: int, weight: float) -> float:
    """g(x) with the forget texts ``left``, by models fitted with and without x."""
    own, others = pool.tokens, pool.others
    assert own is not None and others is not None
    groups = np.arange(N1 + N2) if pool.groups is None else pool.groups
    forget = [own[i] for i in range(N1) if groups[i] != groups[x]]
    forget += [others[i] for i in range(3)]
    retain = [own[i] for i in range(N1, N1 + N2)] + [others[i] for i in range(3, 7)]
    rest = [own[i] for i in [*left, *range(N1, N1 + N2)]]
    without = [own[i] for i in [*left, *range(N1, N1 + N2)] if i != x]
    change = [likelihood(without, read) - likelihood(rest, read) for read in (forget, retain)]
    return change[0] - weight * change[1]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_each_step_takes_the_text_of_largest_gain(pool, weight, grouped):
    if grouped:  # Two of the forget texts, and a retain text with another, are not independent.
        groups = np.arange(N1 + N2)
        groups[2], groups[N1] = 1, 4
        pool = dataclasses.replace(pool, groups=groups)
    found = greedy_unigram.score(pool, {"retain_weight": weight}, 0)
    left = list(range(N1))
    for x in rank(pool, found).tolist():
        gains = {i: gain(pool, left, i, weight) for i in left}
        assert gains[x] == pytest.approx(max(gains.values()), abs=1e-12)
        assert found.scores[x] == pytest.approx(gains[x], abs=1e-12)
        left.remove(x)
    assert left == [] and np.isnan(found.scores[N1:]).all()


def test_many_texts_go_in_rounds_and_the_order_of_the_rows_is_of_no_matter(pool, monkeypatch):
    monkeypatch.setattr(greedy_unigram, "ROUNDS", 3)
    first = greedy_unigram.score(pool, {"retain_weight": 0.3}, 0)
    rows = np.random.default_rng(5).permutation(N1 + N2)
    other = dataclasses.replace(
        pool, ids=pool.ids[rows], forget=pool.forget[rows], tokens=subset(pool.tokens, rows)
    )
    again = greedy_unigram.score(other, {"retain_weight": 0.3}, 1)
    named = [
        each.ids[rank(each, scored)].tolist() for each, scored in ((pool, first), (other, again))
    ]
    assert named[0] == named[1]


def test_the_nll_is_that_of_the_definition():
    own = texts(N1, N2, 2)
    size = vocabulary(own)
    both = counts(own, np.ones(len(own), dtype=bool), size)
    forget, retain = ([own[i] for i in part] for part in (range(N1), range(N1, N1 + N2)))
    wanted = likelihood(retain, forget)
    assert size == V
    assert nll(both[1], both[0]) == pytest.approx(wanted, abs=1e-12)
