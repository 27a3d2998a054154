"""Anisotropy of the two domains, and how their leading subspaces lie to each other (paper, Appendix
"Empirical Evidence for Anisotropy of LLM Embeddings").

What is decomposed ("mean-centred, L2-normalised") are the embeddings of a domain less its mean,
each of the n rows divided by its norm, with singular values sigma_j and right singular vectors v_j.
||X||_F^2 is the domain's whole variance. The shift between the domains has no part in any number.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.tables import DOMAINS, FORGET, read_table
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.pool import BLOCK_BYTES
from mamushi.selection.scores import read_matrix

EXACT_ROWS = 1024  # Rows up to which the rows are decomposed; of more, their d x d products.
NO_VARIANCE = 1e-6  # Share of the first singular value below which a component is rounding.
SAME_SPAN = 0.85  # Affinity from which the paper calls two subspaces the same.
SORTED_AT = 50  # Components of each domain between whose subspaces the paper sorts the angles.


def read_embeddings(path: str | Path) -> tuple[NDArray[np.float16], Mask]:
    """Read the vectors (n, d) of the table ``embeddings``, and which are of forget texts (n,)."""
    table = read_table(path, schemas.EMBEDDINGS, ["id", "domain"])
    return read_matrix(path, table["id"].to_numpy()), np.asarray(pc.equal(table["domain"], FORGET))


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
    ``components``, or less where a domain has fewer dimensions, K <= min(n1 - 1, n2 - 1, d)."""
    domains = [Domain(embeddings, inside) for inside in (forget, ~forget)]
    spectra = [spectrum(domain, components) for domain in domains]
    most = min(len(values) for values, *_ in spectra)
    spectra = [(values[:most], vectors[:, :most], total) for values, vectors, total in spectra]
    power, cosines = discriminative_power(domains, spectra), spectra[0][1].T @ spectra[1][1]
    by_k = [angles(cosines[:k, :k]) for k in range(1, most + 1)]
    # In fewer dimensions than twice as many, two subspaces cannot but meet.
    at = max(1, min(SORTED_AT, most, embeddings.shape[1] // 2))
    columns: dict[str, Any] = {"k": np.arange(1, most + 1)}
    for name, (values, _, variance) in zip(DOMAINS, spectra, strict=True):
        columns[f"singular_{name}"] = values
        columns[f"variance_{name}"] = np.cumsum(values**2) / variance
        columns[f"energy_{name}"] = _shares(values**2)
    return columns | {
        **{"power": power, "power_cumulative": _shares(power), "affinity": affinity(cosines)},
        "angle_median": np.array([np.median(degrees) for degrees in by_k]),
        "angles_above_45": np.array([(degrees > 45).mean() for degrees in by_k]),
        "angle_sorted": [*by_k[at - 1].tolist(), *[None] * (most - at)],
    }


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


def affinity(cosines: Doubles) -> Doubles:
    """Return ||V_1k^T V_2k||_F / sqrt(k) for k = 1..K, from V_1^T V_2 (K, K): the root mean square
    of the cosines of the k principal angles; about sqrt(k / d) at random."""
    within = np.cumsum(np.cumsum(cosines**2, axis=0), axis=1).diagonal()
    return np.minimum(np.sqrt(within / np.arange(1, len(within) + 1)), 1.0)


def angles(cosines: Doubles) -> Doubles:
    """Return the principal angles (k,) in degrees, ascending, between two k-dimensional subspaces:
    arccos of the singular values of V_1^T V_2 (k, k)."""
    values = np.linalg.svd(cosines, compute_uv=False)
    return np.degrees(np.arccos(np.clip(values, 0.0, 1.0)))


def smallest_k(cumulative: NDArray[np.floating[Any]], share: float) -> int:
    """Return the smallest k >= 1 whose cumulative share is at least ``share``; at most all."""
    return min(int(np.searchsorted(cumulative, share)), len(cumulative) - 1) + 1


def geometry_summary(columns: Mapping[str, Any]) -> dict[str, float | int | None]:
    """Return the numbers that the paper quotes, from the columns of ``geometry``; None where there
    are fewer components. ``power_90`` is the k that hold 90% of the discriminative power. It and
    the energies are of what the computed components hold, so compare runs of the same number."""
    quoted = [("angle_median", 2), ("angle_median", 50)]
    quoted += [(f"variance_{name}", 50) for name in DOMAINS]
    quoted += [(f"energy_{name}", k) for k in (25, 50) for name in DOMAINS]
    components = len(columns["k"])
    return {
        "components": components,
        **{f"power_{p}": smallest_k(columns["power_cumulative"], p / 100) for p in (90, 95)},
        "affinity_min": float(min(columns["affinity"][:50])),
        "affinity_max": float(max(columns["affinity"][:50])),
        **{
            f"{name}_{k}": float(columns[name][k - 1]) if k <= components else None
            for name, k in quoted
        },
    }


def _shares(terms: Doubles) -> Doubles:
    """Return cumulative shares of the sum, of which the last is exactly 1."""
    return np.append(np.minimum(np.cumsum(terms) / terms.sum(), 1.0)[:-1], 1.0)
