"""Examples with words: what each selector could see is in one place and in no other."""

import numpy as np

from mamushi.selection.pool import Pool

WIDTH = 6


def worded(n: int, *, words: float = 1.0, last: float = 0.5) -> Pool:
    """``n`` examples, a third of them forget. ``words`` and ``last`` say how far the domains
    are apart in their words and in the embedding; 0: not at all.

    Words are drawn by a shift of log odds on half of the vocabulary; vectors are Gaussian.
    """
    rng = np.random.default_rng(0)
    forget = rng.permutation(np.arange(n) % 3 == 0)
    vocabulary = np.array([f"{a}{b}" for a in "bdfglmnprs" for b in ("an", "ent", "il", "ox")])
    tilt = np.where(np.arange(len(vocabulary)) % 2 == 0, words / 2, -words / 2)
    shares = [np.exp(sign * tilt) for sign in (-1, 1)]
    texts = [
        " ".join(rng.choice(vocabulary, rng.integers(5, 15), p=shares[k] / shares[k].sum()))
        for k in forget.astype(int)
    ]
    vectors = rng.normal(0, 1, (n, WIDTH))
    vectors[forget, 0] += last
    return Pool(
        np.array([f"t{i:04d}" for i in range(n)], dtype=object),
        forget,
        vectors.astype(np.float16),
        texts=np.array(texts, dtype=object),
    )
