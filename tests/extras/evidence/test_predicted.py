"""Predicted retraining: a unigram model of what remains, read by texts it was not made from."""

import numpy as np
import pyarrow as pa
import pytest

from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm.tokens import TokenSet, offsets_of
from mamushi.selection.folds import stratified_folds
from mamushi_extras.evidence.unigram import PRIOR, Proxy, predictions
from mamushi_extras.tokens.masks import highest_spans

N1, N2, V = 12, 14, 15


def texts(n1: int, n2: int, seed: int) -> TokenSet:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 12, n1 + n2)
    low = [np.minimum(rng.integers(0, V, n), rng.integers(0, V, n)) for n in lengths]
    any_ = [rng.integers(0, V, n) for n in lengths]
    rows = [low[i] if i < n1 else any_[i] for i in range(n1 + n2)]
    return TokenSet(
        ids=np.array([f"x{i:02}" for i in range(n1 + n2)], dtype=object),
        domains=np.array([FORGET] * n1 + [RETAIN] * n2, dtype=object),
        tokens=np.concatenate(rows).astype(np.int32),
        offsets=offsets_of(lengths),
    )


def likelihood(trained: list[np.ndarray], read: list[np.ndarray]) -> float:
    """The summed NLL of tokens by a model of tokens, by the definition."""
    seen = np.concatenate(trained).tolist()
    total = len(seen) + PRIOR * V
    return float(sum(-np.log((seen.count(w) + PRIOR) / total) for text in read for w in text))


def effect(own: TokenSet, held: TokenSet | None, gone: set[int]) -> float:
    """What removing some texts does to the mean NLL of forget texts, less nothing removed."""
    parts = [(set(range(len(own))), held, range(len(held) if held else 0))]
    if held is None:
        fold = stratified_folds(own.domains == FORGET, 5, 0)
        parts = [
            (set(np.flatnonzero(fold != part).tolist()), own, np.flatnonzero(fold == part))
            for part in range(5)
        ]
    changed, tokens = 0.0, 0
    for inside, by, rows in parts:
        read = [by[i] for i in rows if by.domains[i] == FORGET]
        models = [[own[i] for i in sorted(inside - out)] for out in (gone, set())]
        changed += likelihood(models[0], read) - likelihood(models[1], read)
        tokens += sum(map(len, read))
    return changed / tokens


@pytest.mark.parametrize("held", [texts(5, 6, 1), None], ids=["held out", "by folds"])
def test_the_curve_is_that_of_models_fitted_to_what_remains(held):
    own, order = texts(N1, N2, 0), np.random.default_rng(3).permutation(N1)
    rank = pa.array([*(1 + np.argsort(order)).tolist(), *[None] * N2], pa.int64())
    ranking = pa.table({"id": own.ids, "rank": rank})
    found = list(predictions(Proxy(own, held), ranking, [0.0, 0.3, 0.5, 1.0]))
    gap = effect(own, held, set(range(N1)))
    assert [row["removed"] for row in found] == [0, 3, 6, 12]
    for row in found:
        wanted = effect(own, held, set(order[: row["removed"]].tolist())) / gap
        assert row["recovered"] == pytest.approx(wanted, abs=1e-12)
    assert found[0]["recovered"] == pytest.approx(0) and found[-1]["recovered"] == pytest.approx(1)


def test_masked_tokens_are_those_of_the_spans():
    own, held = texts(N1, N2, 0), texts(5, 6, 1)
    rng = np.random.default_rng(4)
    scores = [rng.normal(size=n - 1).astype(np.float32) for n in own.lengths]
    columns = {"id": own.ids, "domain": own.domains}
    ranking = pa.table({**columns, "score": pa.array(scores, pa.list_(pa.float32()))})
    scores = scores[:N1]
    total = sum(map(len, scores))
    proxy = Proxy(own, held)
    # Retain texts may be scored as well.
    for row in predictions(proxy, ranking, [0.1, 0.4, 0.9]):
        spans = highest_spans(range(len(scores)), scores, int(row["beta"] * total))
        gone = [own.offsets[s["id"]] + np.arange(s["start"], s["stop"]) for s in spans]
        (wanted,) = proxy.curve([np.concatenate(gone)])
        assert row["recovered"] == pytest.approx(wanted, abs=1e-12)
        assert row["removed"] == int(row["beta"] * total)
