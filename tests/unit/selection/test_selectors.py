"""Every selector that needs no training, against a plain numpy or scikit-learn computation."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.metrics.pairwise import cosine_distances, paired_distances

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection import pool as pool_module
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.scores import rank_forget
from mamushi.selection.selectors import kcenter


@pytest.fixture
def pool(monkeypatch):
    """300 examples in 20 dimensions, read in blocks of 64 rows."""
    monkeypatch.setattr(pool_module, "BLOCK_BYTES", 8 * 20 * 64)
    rng = np.random.default_rng(5)
    forget = rng.random(300) < 0.3
    x = rng.normal(1.0, 1.0, (300, 20)) @ rng.normal(0, 1, (20, 20))
    x[forget] += rng.normal(0, 1, 20)
    ids = np.array([f"t{i:04d}" for i in rng.permutation(300)], dtype=object)
    return Pool(ids, forget, x.astype(np.float16))


def run(name, pool, seed=0, **settings):
    found = plugin("selector", name)
    assert not settings.keys() - found.settings.keys()
    return plugin("selector", name).code.score(pool, {**found.defaults, **settings}, seed)


def parts(pool):
    x = pool.embeddings.astype(np.float64)
    return x, x[pool.forget].mean(axis=0), x[~pool.forget].mean(axis=0)


FORMULAS = {
    "l2_norm": lambda x, mu1, mu2: np.sqrt((x * x).sum(1)),
    "cos_mu2": lambda x, mu1, mu2: cosine_distances(x, mu2[None])[:, 0],
    "lr_cos": lambda x, mu1, mu2: (cosine_distances(x, mu2[None]) - cosine_distances(x, mu1[None]))[
        :, 0
    ],
    "coreset": lambda x, mu1, mu2: -paired_distances(x, np.tile(mu1, (len(x), 1))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_selector_is_its_formula(name, pool):
    expected = FORMULAS[name](*parts(pool))
    np.testing.assert_allclose(run(name, pool).scores, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["ledoit-wolf", "sample"])
def test_lr_maha(pool, kind):
    x, mu1, mu2 = parts(pool)
    centred = np.where(pool.forget[:, None], x - mu1, x - mu2)
    fitted = (LedoitWolf if kind == "ledoit-wolf" else EmpiricalCovariance)(assume_centered=True)
    precision = np.linalg.inv(fitted.fit(centred).covariance_)
    expected = np.subtract(
        *(np.sqrt(np.einsum("ni,ij,nj->n", x - mu, precision, x - mu)) for mu in (mu2, mu1))
    )
    scored = run("lr_maha", pool, covariance=kind)
    np.testing.assert_allclose(scored.scores, expected, atol=1e-9)
    shrinkage = getattr(fitted, "shrinkage_", 0)
    assert scored.details["shrinkage"] == pytest.approx(shrinkage, rel=1e-10)
    with pytest.raises(UserError, match="of 21 texts in 20 dimensions has no inverse"):
        few = Pool(pool.ids[:21], pool.forget[:21], pool.embeddings[:21])
        run("lr_maha", few, covariance="sample")


@pytest.mark.parametrize("kind", ["sample", "ledoit-wolf"])
def test_gaussian_is_the_difference_of_two_log_densities(pool, kind):
    x, logs, shrinkages = pool.embeddings.astype(np.float64), [], []
    for rows in (x[pool.forget], x[~pool.forget]):
        fitted = (LedoitWolf if kind == "ledoit-wolf" else EmpiricalCovariance)().fit(rows)
        logs.append(multivariate_normal(rows.mean(axis=0), fitted.covariance_).logpdf(x))
        shrinkages.append(getattr(fitted, "shrinkage_", 0.0))
    scored = run("gaussian", pool, covariance=kind)
    np.testing.assert_allclose(scored.scores, logs[0] - logs[1], atol=1e-9)
    assert scored.details["shrinkage"] == pytest.approx(shrinkages, rel=1e-9)


def test_vmf(pool):
    x, _, _ = parts(pool)
    u = x / np.sqrt((x**2).sum(axis=1))[:, None]
    contrast = np.zeros(300)
    for sign, domain in ((1, pool.forget), (-1, ~pool.forget)):
        mean = u[domain].mean(axis=0)
        r = np.sqrt(mean @ mean)
        k = r * (20 - r**2) / (1 - r**2)
        contrast += sign * k * (u @ mean) / r
    scored = run("vmf", pool)
    np.testing.assert_allclose(scored.scores, contrast, atol=1e-10)
    assert scored.details["concentration"]["retain"] == pytest.approx(k)


def test_random_depends_on_seed_and_ids_alone(pool):
    first, other = (rank_forget(pool, run("random", pool, seed=s)).tolist() for s in (1, 2))
    assert first != other
    shuffle = np.random.default_rng(0).permutation(300)
    moved = Pool(pool.ids[shuffle], pool.forget[shuffle], pool.embeddings[shuffle])
    again = rank_forget(moved, run("random", moved, seed=1))
    assert moved.ids[again].tolist() == pool.ids[first].tolist()


def tricky(kind: str) -> np.ndarray:
    """Points between which float32 cannot tell who is farther."""
    rng = np.random.default_rng(2)
    if kind == "plain":
        points = rng.normal(size=(90, 20))
    elif kind == "grid":  # Most distances are shared by many pairs.
        points = rng.permutation(np.indices((6, 6, 6)).reshape(3, -1).T)
    elif kind == "near copies":  # Distances a hundred thousandth of the norms.
        base = rng.normal(size=(30, 64)).repeat(8, axis=0) * 100
        points = base + rng.normal(size=base.shape) * 0.1
    else:
        points = 1000 + rng.integers(0, 3, (300, 64))
    return points.astype(np.float16)


@pytest.mark.parametrize("gram", [kcenter.GRAM, 0])
@pytest.mark.parametrize("kind", ["plain", "grid", "near copies", "far from zero"])
def test_kcenter_picks_what_exact_arithmetic_picks(kind, gram, monkeypatch):
    monkeypatch.setattr(kcenter, "GRAM", gram)
    x = tricky(kind)
    ids = np.array([f"t{i:04d}" for i in range(len(x))], dtype=object)
    pool = Pool(ids, np.ones(len(x), bool), x)
    scored = run("kcenter", pool)
    order = rank_forget(pool, scored)
    wide = x.astype(np.float64)
    nearest, picked = np.full(len(x), np.inf), order[:1].tolist()
    for _ in range(len(x) - 1):
        nearest = np.minimum(nearest, np.square(wide - wide[picked[-1]]).sum(axis=1))
        nearest[picked[-1]] = -1.0
        picked.append(int(nearest.argmax()))
        assert scored.scores[picked[-1]] == pytest.approx(np.sqrt(nearest.max()), rel=1e-14)
    assert order.tolist() == picked


def test_anti_mamushi_negates_and_keeps_the_folds(pool):
    base = Scored(np.arange(300.0), fold=np.arange(300, dtype=np.int16) % 5)
    scored = run("anti_mamushi", dataclasses.replace(pool, base=base))
    assert np.array_equal(scored.scores, -base.scores)
    assert np.array_equal(scored.fold, base.fold)
    assert rank_forget(pool, scored).tolist() == rank_forget(pool, base)[::-1].tolist()
