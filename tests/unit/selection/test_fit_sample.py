"""Fitting on a sample of many examples, and scoring all of them in parts."""

import numpy as np
import pytest

from mamushi.registry import load, plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import Fit, Task, cross_fit
from mamushi.selection.pool import Pool

FEW = {
    "mamushi": {"hidden": [8], "epochs": 2, "seeds_averaged": 1},
    "mamushi_lr": {},
    "stack": {},
    "lexical": {},
    "mamushi_words": {},
}


@pytest.fixture(scope="module")
def pool() -> Pool:
    rng = np.random.default_rng(0)
    forget = rng.random(600) < 0.2
    x = rng.normal(size=(600, 6)) + forget[:, None]
    words = np.where(forget, "snake", "cat")
    texts = np.array([f"{word} {i % 7}" for i, word in enumerate(words)], dtype=object)
    ids = np.array([f"t{i:04d}" for i in range(600)], dtype=object)
    return Pool(ids, forget, x.astype(np.float16), texts=texts)


def tasks(pool: Pool, fit_sample: int | None, seed: int = 0) -> list[Task]:
    found: list[Task] = []

    def estimate(task: Task) -> Fit:
        found.append(task)
        return task.embeddings[task.held, 0].astype(np.float64), {}

    cross_fit(pool, 3, seed, estimate, "test", fit_sample)
    return sorted(found, key=lambda task: int(task.held[0]))


@pytest.mark.parametrize(("most", "rare"), [(100, False), (200, True)])
def test_a_sample_has_a_rare_domain_whole_or_both_in_proportion(
    pool: Pool, most: int, rare: bool
) -> None:
    whole, sampled = tasks(pool, None), tasks(pool, most)
    share = most / len(whole[0].train)
    for all_of, some in zip(whole, sampled, strict=True):
        assert set(some.train) < set(all_of.train)
        assert len(some.train) == pytest.approx(most, abs=1)
        there = pool.forget[all_of.train].sum()
        asked = there if rare else share * there
        assert pool.forget[some.train].sum() == pytest.approx(asked, abs=1)
        # All are scored, and standardised by all.
        assert np.array_equal(some.held, all_of.held)
        assert np.array_equal(some.mean, all_of.mean)
    assert not np.array_equal(tasks(pool, most, seed=1)[0].train, sampled[0].train)
    for all_of, some in zip(whole, tasks(pool, 410), strict=True):
        assert np.array_equal(some.train, all_of.train)


@pytest.mark.parametrize("name", FEW)
def test_a_selector_fits_on_its_sample(
    pool: Pool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    drawn = crossfit.draw_sample

    def noted(forget: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
        rows = drawn(forget, most, rng)
        seen.append(len(rows))
        return rows

    monkeypatch.setattr(crossfit, "draw_sample", noted)
    settings = plugin("selector", name).defaults | FEW[name] | {"folds": 3, "fit_sample": 150}
    scored = load("selector", name).score(pool, settings, 0)
    assert np.isfinite(scored.scores).all()
    assert len(seen) >= 3 and max(seen) <= 151
