"""Anisotropy of the two domains, and how their leading subspaces lie to each other (paper, Appendix
"Empirical Evidence for Anisotropy of LLM Embeddings").

What is decomposed ("mean-centred, L2-normalised") are the embeddings of a domain less its mean,
each of the n rows divided by its norm, with singular values sigma_j and right singular vectors v_j.
||X||_F^2 is the domain's whole variance. The shift between the domains has no part in any number.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.io.domains import DOMAINS
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.pool import BLOCK_BYTES

EXACT_ROWS = 1024  # Rows up to which the rows are decomposed; of more, their d x d products.
NO_VARIANCE = 1e-6  # Share of the first singular value below which a component is rounding.
SAME_SPAN = 0.85  # Affinity from which the paper calls two subspaces the same.
SORTED_AT = 50  # Components of each domain between whose subspaces the paper sorts the angles.
ANGLE_BANDS = (30, 45)
"""Degrees up to which the paper calls an angle that of a shared, and of a moderately distinct
direction."""
QUOTED = {
    **{"angle_median": (2, 50), "angles_above_45": (50,)},
    **{"variance_forget": (50,), "variance_retain": (50,)},
    **{"energy_forget": (25, 50), "energy_retain": (25, 50)},
}
"""The numbers of components at which the paper quotes a column."""


class Domain:
    """The centred unit rows X (n, d) of a domain's embeddings, made anew in each pass over them, in
    blocks of bounded memory."""

    def __init__(self, embeddings: NDArray[np.float16], inside: Mask) -> None:
        self.embeddings, self.rows = embeddings, np.flatnonzero(inside)
        total = embeddings.sum(axis=0, dtype=np.float64, where=inside[:, None])
        self.mean = total / len(self.rows)

    def __iter__(self) -> Iterator[Doubles]:
        size = max(1, BLOCK_BYTES // (8 * self.embeddings.shape[1]))
        for start in range(0, len(self.rows), size):
            x = self.embeddings[self.rows[start : start + size]].astype(np.float64) - self.mean
            norm = np.sqrt(np.einsum("ij,ij->i", x, x))
            # A sum of float16 is exact in float64, so a row at the mean is zero and not rounding.
            norm[norm == 0] = np.inf
            yield x / norm[:, None]


Spectrum = tuple[Doubles, Doubles, float]
"""The leading singular values (k,) of X (n, d), descending, their right singular vectors (d, k),
and ||X||_F^2 over all components."""


def spectrum(domain: Domain, components: int) -> Spectrum:
    """Return the SVD of the rows X (n, d), truncated to at most ``components`` and the rank of X:
    by LAPACK's of few rows, else by the eigenvectors of X^T X. Raises ``ValueError`` when the
    embeddings are all the same."""
    d = domain.embeddings.shape[1]
    if len(domain.rows) <= EXACT_ROWS:
        x = np.concatenate(list(domain))
        variance = float(np.einsum("ij,ij->", x, x))
        _, values, transposed = np.linalg.svd(x, full_matrices=False)
        vectors = transposed.T
    else:
        from scipy.linalg import eigh

        gram = sum((x.T @ x for x in domain), np.zeros((d, d)))
        variance = float(np.trace(gram))
        squares, vectors = eigh(gram, subset_by_index=(max(d - components, 0), d - 1))
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]
    if not variance:
        raise ValueError(f"{len(domain.rows)} embeddings of a domain are all the same")
    k = min(components, int((values > NO_VARIANCE * values[0]).sum()))
    vectors = vectors[:, :k]
    largest = np.abs(vectors).argmax(axis=0)
    return values[:k], vectors * np.sign(vectors[largest, np.arange(k)]), variance


def geometry_columns(
    embeddings: NDArray[np.float16], forget: Mask, components: int
) -> dict[str, Any]:
    """Return the columns of the table ``geometry`` but for the run, each (K,), for k = 1..K: K is
    ``components``, or less where a domain has fewer dimensions, K <= min(n1 - 1, n2 - 1, d).

    The affinity is ||V_1k^T V_2k||_F / sqrt(k), about sqrt(k / d) at random, and the principal
    angles are arccos of the singular values of V_1k^T V_2k (k, k).
    """
    domains = [Domain(embeddings, inside) for inside in (forget, ~forget)]
    spectra = [spectrum(domain, components) for domain in domains]
    most = min(len(values) for values, *_ in spectra)
    spectra = [(values[:most], vectors[:, :most], total) for values, vectors, total in spectra]
    columns: dict[str, Any] = {"k": np.arange(1, most + 1)}
    for name, (values, _, variance) in zip(DOMAINS, spectra, strict=True):
        columns[f"singular_{name}"] = values
        columns[f"variance_{name}"] = np.cumsum(values**2) / variance
        columns[f"energy_{name}"] = _shares(values**2)
    columns["power"] = discriminative_power(domains, spectra)
    columns["power_cumulative"] = _shares(columns["power"])
    cosines = spectra[0][1].T @ spectra[1][1]
    within = np.cumsum(np.cumsum(cosines**2, axis=0), axis=1).diagonal()
    columns["affinity"] = np.minimum(np.sqrt(within / columns["k"]), 1.0)
    singular = [np.linalg.svd(cosines[:k, :k], compute_uv=False) for k in columns["k"]]
    angles = [np.degrees(np.arccos(np.clip(values, 0.0, 1.0))) for values in singular]
    columns["angle_median"] = np.array([np.median(degrees) for degrees in angles])
    columns["angles_above_45"] = np.array([(degrees > 45).mean() for degrees in angles])
    # In fewer dimensions than twice as many, two subspaces cannot but meet.
    at = max(1, min(SORTED_AT, most, embeddings.shape[1] // 2))
    columns["angle_sorted"] = [*angles[at - 1].tolist(), *[None] * (most - at)]
    return columns


def discriminative_power(domains: list[Domain], spectra: list[Spectrum]) -> Doubles:
    """Return the paper's Var[sigma_1j <h, v_1j> - sigma_2j <h, v_2j>] (k,), where h runs over the
    rows of both domains as they were decomposed. Each sigma is divided by sqrt(n) of its domain,
    else the larger one would decide, and v_2j is turned so that <v_1j, v_2j> >= 0."""
    (values1, vectors1, _), (values2, vectors2, _) = spectra
    turn = np.where(np.einsum("ij,ij->j", vectors1, vectors2) < 0, -1.0, 1.0)
    contrast = vectors1 * (values1 / np.sqrt(len(domains[0].rows)))
    contrast -= vectors2 * (turn * (values2 / np.sqrt(len(domains[1].rows))))
    total, square, n = 0.0, 0.0, sum(len(domain.rows) for domain in domains)
    for along in (x @ contrast for domain in domains for x in domain):
        total = total + along.sum(axis=0)
        square = square + (along**2).sum(axis=0)
    # The rows are centred but for what the division by their norms shifts: nothing cancels here.
    return np.asarray(np.maximum(square / n - (total / n) ** 2, 0.0))


def smallest_k(cumulative: NDArray[np.floating[Any]], share: float) -> int:
    """Return the smallest k >= 1 whose cumulative share is at least ``share``; at most all."""
    return min(int(np.searchsorted(cumulative, share)), len(cumulative) - 1) + 1


def geometry_summary(columns: Mapping[str, Any]) -> dict[str, float | int | None]:
    """Return the numbers that the paper quotes, from the columns of ``geometry``; None where there
    are fewer components. ``power_90`` is the k that hold 90% of the discriminative power. It and
    the energies are of what the computed components hold, so compare runs of the same number."""
    components, affinity = len(columns["k"]), columns["affinity"][:SORTED_AT]
    summary: dict[str, float | int | None] = {"components": components}
    for percent in (90, 95):
        summary[f"power_{percent}"] = smallest_k(columns["power_cumulative"], percent / 100)
    summary |= {"affinity_min": float(min(affinity)), "affinity_max": float(max(affinity))}
    for name, quoted in QUOTED.items():
        for k in quoted:
            summary[f"{name}_{k}"] = float(columns[name][k - 1]) if k <= components else None
    angles = np.array(columns["angle_sorted"], dtype=np.float64)
    angles = angles[np.isfinite(angles)]
    counts = angle_counts(angles) if len(angles) == SORTED_AT else (None, None, None)
    for name, count in zip(("shared", "moderate", "distinct"), counts, strict=True):
        summary[f"angles_{name}"] = count
    return summary


def angle_counts(angles: NDArray[np.floating[Any]]) -> tuple[int, int, int]:
    """Return how many of the angles (k,), in degrees, are up to the first of ``ANGLE_BANDS``, from
    there up to the second, and above it."""
    shared, moderate = (int((angles <= edge).sum()) for edge in ANGLE_BANDS)
    return shared, moderate - shared, len(angles) - moderate


def _shares(terms: Doubles) -> Doubles:
    """Return cumulative shares of the sum, of which the last is exactly 1."""
    return np.append(np.minimum(np.cumsum(terms) / terms.sum(), 1.0)[:-1], 1.0)
