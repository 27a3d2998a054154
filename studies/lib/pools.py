"""Synthetic embeddings whose density ratio is known, of any number and width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from mamushi.selection.pool import Pool

LATENT = 16
COMPONENTS = 12
BLOCK = 8192


def synthetic(n: int, d: int, share: float = 0.1, seed: int = 0) -> Pool:
    """``n`` embeddings (n, d) in float16, a ``share`` of them forget, with their exact ratio.

    Each domain is a mixture of the same Gaussians in min(LATENT, d) dimensions, with weights of its
    own, so that the domains overlap and no hyperplane tells them apart. The remaining dimensions
    are noise with a spectrum that falls like that of a language model's embeddings. An orthogonal
    map mixes all dimensions, and every column gets an offset and a scale; neither changes the
    ratio. The same seed gives the same pool.
    """
    rng = np.random.default_rng(seed)
    k = min(LATENT, d)
    centres = rng.normal(0, 1.1, (COMPONENTS, k))
    logits = rng.normal(0, 1.6, (2, COMPONENTS))
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    forget = np.zeros(n, dtype=np.bool_)
    forget[rng.permutation(n)[: max(1, round(share * n))]] = True
    spectrum = 1.5 / np.sqrt(1 + np.arange(d - k) / 8)
    signs, places = rng.choice([-1.0, 1.0], d), rng.permutation(d)
    scale, offset = np.exp(rng.normal(0, 0.7, d)), rng.normal(0, 1, d) * rng.exponential(1, d)
    embeddings = np.empty((n, d), dtype=np.float16)
    truth = np.empty(n)
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        domain = np.where(forget[rows], 0, 1)
        count = len(domain)
        cumulated = weights.cumsum(axis=1)[domain]
        component = (rng.random((count, 1)) > cumulated[:, :-1]).sum(axis=1)
        z = centres[component] + rng.normal(size=(count, k))
        noise = rng.standard_normal((count, d - k), dtype=np.float32) * spectrum
        x = (np.concatenate([z, noise], axis=1) * signs)[:, places]
        embeddings[rows] = (dct(x, norm="ortho", axis=1) + offset) * scale
        truth[rows] = _log_ratio(z, centres, weights)
    ids = np.array([f"t{i:07d}" for i in range(n)], dtype=object)
    return Pool(ids, forget, embeddings, truth=truth)


def _log_ratio(
    z: NDArray[np.float64], centres: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """log p1(z)/p2(z) (n,) of two mixtures of unit Gaussians at ``centres``."""
    squared = np.square(z[:, None] - centres).sum(axis=2)
    density = np.exp(-(squared - squared.min(axis=1, keepdims=True)) / 2)
    p1, p2 = (density @ w for w in weights)
    ratio: NDArray[np.float64] = np.log(p1) - np.log(p2)
    return ratio
