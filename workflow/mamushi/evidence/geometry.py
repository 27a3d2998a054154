"""Anisotropy of the two domains, and how their leading subspaces lie to each other (paper, Appendix
"Empirical Evidence for Anisotropy of LLM Embeddings").

What is decomposed ("mean-centred, L2-normalised") are the embeddings of a domain less its mean,
each of the n rows divided by its norm, with singular values sigma_j and right singular vectors v_j.
||X||_F^2 is the domain's whole variance. The shift between the domains has no part in any number.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.tables import DOMAINS, FORGET, read_table
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import BLOCK_BYTES, Pool
from mamushi.selection.scores import read_matrix

EXACT_ROWS = 1024
"""Rows up to which the rows are decomposed; of more, their d x d products."""
NO_VARIANCE = 1e-6
"""The share of the first singular value below which a component is rounding."""
SAME_SPAN = 0.85
"""Affinity from which the paper calls two subspaces the same."""
SORTED_AT = 50
"""Components of each domain between whose subspaces the paper sorts the angles."""


def read_embeddings(path: str | Path) -> Pool:
    """Read the table ``embeddings`` alone as a pool."""
    table = read_table(path, schemas.EMBEDDINGS, ["id", "domain"])
    ids, forget = table["id"].to_numpy(), np.asarray(pc.equal(table["domain"], FORGET))
    return Pool(ids, forget, read_matrix(path, ids))


class Domain:
    """The centred unit rows X (n, d) of a domain of a pool, made anew in each pass over them."""

    def __init__(self, pool: Pool, name: str) -> None:
        self.name, self.embeddings = name, pool.embeddings
        self.positions = np.flatnonzero(pool.forget == (name == FORGET))
        totals = (x.sum(axis=0) for x in self._embedded())
        self.mean = sum(totals, np.zeros(pool.width)) / len(self.positions)

    def _embedded(self) -> Iterator[Doubles]:
        """Yield the embeddings in float64, in blocks of bounded memory."""
        size = max(1, BLOCK_BYTES // (8 * self.embeddings.shape[1]))
        for start in range(0, len(self.positions), size):
            yield self.embeddings[self.positions[start : start + size]].astype(np.float64)

    def blocks(self) -> Iterator[Doubles]:
        """Yield consecutive rows of X, in blocks of bounded memory."""
        for x in self._embedded():
            x -= self.mean
            norm = np.sqrt(np.einsum("ij,ij->i", x, x))
            # A sum of float16 is exact in float64, so a row at the mean is zero and not rounding.
            norm[norm == 0] = np.inf
            yield x / norm[:, None]


class Spectrum(NamedTuple):
    """The leading singular values (k,) of X (n, d), descending, their right singular vectors (d,
    k), and ``variance``, ||X||_F^2 over all components."""

    values: Doubles
    vectors: Doubles
    variance: float
    n: int


def spectrum(rows: Domain, components: int, exact: int = EXACT_ROWS) -> Spectrum:
    """Return the truncated SVD of the rows X (n, d), of at most ``components`` components and the
    rank of X: with n <= ``exact`` by LAPACK's SVD of X, else by the eigenvectors of X^T X. Raises
    ``ValueError`` when the domain's embeddings are all the same."""
    n, d = len(rows.positions), rows.embeddings.shape[1]
    if n <= exact:
        x = np.concatenate(list(rows.blocks()))
        variance = float(np.einsum("ij,ij->", x, x))
        _, values, transposed = np.linalg.svd(x, full_matrices=False)
        vectors = transposed.T
    else:
        from scipy.linalg import eigh

        gram = sum((x.T @ x for x in rows.blocks()), np.zeros((d, d)))
        variance = float(np.trace(gram))
        squares, vectors = eigh(gram, subset_by_index=(max(d - components, 0), d - 1))
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]
    if not variance:
        raise ValueError(f"the {n} {rows.name} embeddings are all the same")
    k = min(components, int((values > NO_VARIANCE * values[0]).sum()))
    vectors = vectors[:, :k]
    largest = np.abs(vectors).argmax(axis=0)
    return Spectrum(values[:k], vectors * np.sign(vectors[largest, np.arange(k)]), variance, n)


def geometry_columns(pool: Pool, components: int, exact: int = EXACT_ROWS) -> dict[str, Any]:
    """Return the columns of the table ``geometry`` but for the run, each (K,), for k = 1..K: K is
    ``components``, or less where a domain has fewer dimensions, K <= min(n1 - 1, n2 - 1, d)."""
    domains = [Domain(pool, name) for name in DOMAINS]
    spectra = [spectrum(rows, components, exact) for rows in domains]
    most = min(len(decomposed.values) for decomposed in spectra)
    spectra = [
        Spectrum(values[:most], vectors[:, :most], variance, n)
        for values, vectors, variance, n in spectra
    ]
    power = discriminative_power(domains, *spectra)
    cosines = spectra[0].vectors.T @ spectra[1].vectors
    by_k = [angles(cosines[:k, :k]) for k in range(1, most + 1)]
    # In fewer dimensions than twice as many, two subspaces cannot but meet: in the end both are
    # all of the space, with angles of 0.
    at = max(1, min(SORTED_AT, most, pool.width // 2))
    columns: dict[str, Any] = {"k": np.arange(1, most + 1)}
    for name, (values, _, variance, _) in zip(DOMAINS, spectra, strict=True):
        columns[f"singular_{name}"] = values
        columns[f"variance_{name}"] = np.cumsum(values**2) / variance
        columns[f"energy_{name}"] = _shares(values**2)
    return columns | {
        **{"power": power, "power_cumulative": _shares(power), "affinity": affinity(cosines)},
        "angle_median": np.array([np.median(degrees) for degrees in by_k]),
        "angles_above_45": np.array([(degrees > 45).mean() for degrees in by_k]),
        "angle_sorted": [*by_k[at - 1].tolist(), *[None] * (most - at)],
    }


def discriminative_power(domains: list[Domain], first: Spectrum, second: Spectrum) -> Doubles:
    """Return the paper's Var[sigma_1j <h, v_1j> - sigma_2j <h, v_2j>] (k,), where h runs over the
    rows of both domains as they were decomposed. Each sigma is divided by sqrt(n) of its domain,
    else the larger one would decide, and v_2j is turned so that <v_1j, v_2j> >= 0."""
    turn = np.where(np.einsum("ij,ij->j", first.vectors, second.vectors) < 0, -1.0, 1.0)
    contrast = first.vectors * (first.values / np.sqrt(first.n))
    contrast -= second.vectors * (turn * (second.values / np.sqrt(second.n)))
    total, square, n = 0.0, 0.0, first.n + second.n
    for along in (x @ contrast for rows in domains for x in rows.blocks()):
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
    affinities = columns["affinity"][:50]
    quoted = [("angle_median", 2), ("angle_median", 50)]
    quoted += [(f"variance_{name}", 50) for name in DOMAINS]
    quoted += [(f"energy_{name}", k) for k in (25, 50) for name in DOMAINS]
    components = len(columns["k"])
    return {
        "components": components,
        **{f"power_{p}": smallest_k(columns["power_cumulative"], p / 100) for p in (90, 95)},
        **{"affinity_min": float(min(affinities)), "affinity_max": float(max(affinities))},
        **{
            f"{name}_{k}": float(columns[name][k - 1]) if k <= components else None
            for name, k in quoted
        },
    }


def _shares(terms: Doubles) -> Doubles:
    """Return cumulative shares of the sum; k / K of nothing, so that the last is always 1."""
    total = terms.sum()
    if not total:
        return np.arange(1, len(terms) + 1) / len(terms)
    return np.append(np.minimum(np.cumsum(terms) / total, 1.0)[:-1], 1.0)
