"""Geometry of the embeddings: against dense algebra, closed forms, and degenerate embeddings."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from mamushi.evidence import geometry
from mamushi.evidence.geometry import geometry_columns, geometry_summary
from mamushi.io import schemas

Vectors = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""The embeddings, and which are of forget texts."""


def anisotropic(n1: int, n2: int, d: int) -> Vectors:
    """Two domains with decaying spectra along axes that differ by a small rotation."""
    rng = np.random.default_rng(0)
    scale = 0.95 ** np.arange(d) + 0.01
    first = np.linalg.qr(rng.standard_normal((d, d)))[0]
    second = np.linalg.qr(first + 0.03 * rng.standard_normal((d, d)))[0]
    forget = 3 + (rng.standard_normal((n1, d)) * scale) @ first.T
    retain = (rng.standard_normal((n2, d)) * scale**0.8) @ second.T - 1
    # Interleaved, as in the artifact.
    order = rng.permutation(n1 + n2)
    return np.concatenate([forget, retain]).astype(np.float16)[order], order < n1


def unit_rows(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x = x.astype(np.float64)
    x -= x.mean(axis=0)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def dense(vectors: Vectors, components: int) -> dict[str, Any]:
    """All columns by numpy's and scipy's own functions on whole matrices."""
    x, forget = vectors
    x1, x2 = unit_rows(x[forget]), unit_rows(x[~forget])
    (_, s1, v1), (_, s2, v2) = (np.linalg.svd(x, full_matrices=False) for x in (x1, x2))
    k = np.arange(1, components + 1)
    every = np.concatenate([x1, x2])
    power = []
    for j in range(components):
        a = s1[j] / np.sqrt(len(x1)) * every @ v1[j]
        b = s2[j] / np.sqrt(len(x2)) * every @ v2[j]
        power.append(np.var(a - b if v1[j] @ v2[j] >= 0 else a + b))
    found = [np.degrees(subspace_angles(v1[:i].T, v2[:i].T)) for i in k]
    result: dict[str, Any] = {"k": k, "power": np.array(power)}
    result["power_cumulative"] = np.cumsum(power) / np.sum(power)
    for name, s in (("forget", s1), ("retain", s2)):
        result[f"singular_{name}"] = s[:components]
        result[f"variance_{name}"] = np.cumsum(s**2)[:components] / (s**2).sum()
        result[f"energy_{name}"] = np.cumsum(s[:components] ** 2) / (s[:components] ** 2).sum()
    result["affinity"] = [np.linalg.norm(v1[:i] @ v2[:i].T) / np.sqrt(i) for i in k]
    result["angle_median"] = [np.median(a) for a in found]
    result["angles_above_45"] = [np.mean(a > 45) for a in found]
    result["angle_sorted"] = np.sort(found[-1])
    return result


@pytest.mark.parametrize("exact_rows", [10**6, 0], ids=["SVD", "products"])
def test_every_column_agrees_with_a_dense_svd(
    exact_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometry, "EXACT_ROWS", exact_rows)
    vectors = anisotropic(300, 500, 128)
    columns, expected = geometry_columns(*vectors, 50), dense(vectors, 50)
    assert set(columns) == set(schemas.GEOMETRY.schema.names) - {"dataset", "model", "seed"}
    for name, values in expected.items():
        np.testing.assert_allclose(columns[name], values, atol=1e-4, rtol=1e-4, err_msg=name)
    angles, summary = expected["angle_sorted"], geometry_summary(columns)
    counts = [summary[f"angles_{name}"] for name in ("shared", "moderate", "distinct")]
    assert counts == np.histogram(angles, [0, 30, 45, 90])[0].tolist()
    assert summary["angles_above_45_50"] == np.mean(angles > 45)
    # The decomposition is no trivial one: the subspaces differ, and hold a part of the variance.
    assert columns["affinity"].max() < 0.95
    assert 0.3 < columns["variance_forget"][-1] < 0.995
