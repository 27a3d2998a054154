"""Examples with words: what each selector could see is in one place and in no other."""

from typing import Any

import numpy as np
import pytest

from mamushi.registry import load, plugin
from mamushi.selection import crossfit
from mamushi.selection.pool import Pool, Scored

WIDTH = 6


def worded(n: int, *, words: float = 1.0, last: float = 0.5, seed: int = 0) -> Pool:
    """``n`` examples, a third of them forget. ``words`` and ``last`` say how far the domains
    are apart in their words and in the embedding; 0: not at all.

    Words are drawn by a shift of log odds on half of the vocabulary; vectors are Gaussian.
    """
    rng = np.random.default_rng(seed)
    forget = rng.permutation(np.arange(n) % 3 == 0)
    vocabulary = np.array([f"{a}{b}" for a in "bdfglmnprs" for b in ("an", "ent", "il", "ox")])
    tilt = np.where(np.arange(len(vocabulary)) % 2 == 0, words / 2, -words / 2)
    shares = [np.exp(sign * tilt) for sign in (-1, 1)]
    texts = [
        " ".join(rng.choice(vocabulary, rng.integers(5, 15), p=shares[k] / shares[k].sum()))
        for k in forget.astype(int)
    ]

    def vectors(apart: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
        x = rng.normal(0, 1, (n, WIDTH))
        x[forget, 0] += apart
        return x.astype(np.float16)

    return Pool(
        np.array([f"t{i:04d}" for i in range(n)], dtype=object),
        forget,
        vectors(last),
        texts=np.array(texts, dtype=object),
    )


def run(name: str, pool: Pool, seed: int = 0, **settings: Any) -> Scored:
    """The scores of a selector with its defaults but for ``settings``."""
    found = {**plugin("selector", name).defaults, **settings}
    scored = load("selector", name).score(pool, found, seed)
    assert isinstance(scored, Scored)
    return scored


def check_flip(name: str, pool: Pool, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """The scores of a fold, with all labels of the fold turned around: the same bits.

    The folds are held: which of them a text is in is drawn from its domain.
    """
    before = run(name, pool, **settings)
    fold = before.fold
    assert fold is not None
    drawn = crossfit.stratified_folds
    held = fold == 0
    monkeypatch.setattr(
        crossfit,
        "stratified_folds",
        lambda forget, k, seed, groups: (
            fold if len(forget) == len(fold) else drawn(forget, k, seed, groups)
        ),
    )
    turned = Pool(
        pool.ids,
        np.where(held, ~pool.forget, pool.forget),
        pool.embeddings,
        texts=pool.texts,
    )
    after = run(name, turned, **settings)
    assert np.array_equal(after.scores[held], before.scores[held])
    assert not np.array_equal(after.scores[~held], before.scores[~held])
