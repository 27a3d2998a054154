"""The synthetic densities: the exact ratio against loops over the definition, and the draws."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.data import mixture as model
from mamushi.data.loaders import synthetic
from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.registry import plugin

WEIGHTS = np.array([[0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])


def settings(**changes: Any) -> dict[str, Any]:
    small = {
        name: {"forget": 30, "retain": 50} for name in ("contamination", "inference", "evaluation")
    }
    return plugin("dataset", "synthetic").defaults | {"sizes": small} | changes


def load(**changes: Any) -> Raw:
    return synthetic.load(settings(**changes), Path("unused"))


def ratio_by_loops(mixture: model.Mixture, text: str) -> float:
    """log p1(x)/p2(x) from the definition, as products of probabilities word by word."""
    words = [mixture.words.index(word) for word in text.split()]
    density = [0.0, 0.0]
    for domain in range(2):
        for c in range(len(mixture.topics)):
            probability = 1.0
            for t, word in enumerate(words):
                common = mixture.first[word] if t == 0 else mixture.backbone[words[t - 1], word]
                topic = mixture.topics[c, word]
                probability *= (1 - mixture.topic_share) * common + mixture.topic_share * topic
            density[domain] += mixture.weights[domain, c] * probability
    return math.log(density[0]) - math.log(density[1])


def test_stored_ratio_is_that_of_the_definition() -> None:
    given = settings(vocabulary=60, words=[1, 15])
    raw = synthetic.load(given, Path("unused"))
    weights = np.array([given["weights"]["forget"], given["weights"]["retain"]])
    mixture = model.make(60, weights, given["topic_share"], given["seed"])
    assert raw.log_density_ratio is not None
    for text, ratio in zip(raw.texts, raw.log_density_ratio, strict=True):
        assert ratio == pytest.approx(ratio_by_loops(mixture, text), abs=1e-9)


def test_distributions_sum_to_1_and_the_backbone_has_no_zeros() -> None:
    mixture = model.make(50, WEIGHTS, 0.4, 0)
    for table in (mixture.first[None], mixture.backbone, mixture.topics):
        np.testing.assert_allclose(table.sum(axis=1), 1)
    assert (mixture.backbone > 0).all() and (mixture.first > 0).all()


def test_likelihoods_sum_to_1_over_all_texts_of_a_length() -> None:
    mixture = model.make(10, WEIGHTS, 0.4, 0)
    texts = np.stack(np.meshgrid(*[np.arange(10)] * 3), axis=-1).reshape(-1, 3)
    likelihood = np.exp(model.log_likelihoods(mixture, texts))
    np.testing.assert_allclose(likelihood.sum(axis=0), 1)


def test_draws_follow_the_density() -> None:
    mixture = model.make(10, WEIGHTS, 0.4, 0)
    n = 60_000
    rng = np.random.default_rng(1)
    tokens, component = model.draw(mixture, np.zeros(n, dtype=np.int64), (2, 2), rng)
    np.testing.assert_allclose(np.bincount(component) / n, WEIGHTS[0], atol=0.01)
    pairs = np.stack(np.meshgrid(np.arange(10), np.arange(10), indexing="ij"), -1).reshape(-1, 2)
    expected = np.exp(model.log_likelihoods(mixture, pairs)) @ WEIGHTS[0]
    observed = np.bincount(tokens[:, 0] * 10 + tokens[:, 1], minlength=100) / n
    # Five standard deviations of a frequency.
    assert (np.abs(observed - expected) < 5 * np.sqrt(expected / n) + 1e-4).all()


def test_a_component_that_one_domain_lacks_gives_a_finite_ratio() -> None:
    mixture = model.make(30, WEIGHTS, 0.4, 0)
    domain = np.zeros(100, dtype=np.int64)
    tokens, component = model.draw(mixture, domain, (5, 9), np.random.default_rng(0))
    ratio = model.log_density_ratio(mixture, tokens)
    assert np.isfinite(ratio).all()
    assert ratio[component == 0].mean() > ratio[component != 0].mean() + 1


def test_lengths_are_within_the_range_and_both_ends_occur() -> None:
    lengths = {len(text.split()) for text in load(words=[3, 6]).texts}
    assert lengths == {3, 4, 5, 6}


def test_words_are_distinct_and_pronounceable() -> None:
    for n in (10, 2500, 5000):
        words = model.pseudo_words(n, np.random.default_rng(0))
        assert len(set(words)) == n
        assert all(set(w[0::2]) <= set("bdflmnrstv") for w in words)
        assert all(set(w[1::2]) <= set("aeiou") for w in words)


def test_same_seed_same_texts_and_another_seed_others() -> None:
    assert load().texts == load().texts
    assert not set(load().texts) & set(load(seed=1).texts)


def test_texts_of_a_cell_do_not_depend_on_the_size_of_another() -> None:
    sizes = settings()["sizes"] | {"contamination": {"forget": 7, "retain": 9}}
    changed, before = load(sizes=sizes), load()
    cells = (
        [t for t, s in zip(raw.texts, raw.section, strict=True) if s == "evaluation"]
        for raw in (changed, before)
    )
    assert next(cells) == next(cells)


def test_rows() -> None:
    raw = load()
    assert len(set(raw.ids)) == len(raw.ids) == 3 * 80
    assert len(set(raw.texts)) == len(raw.texts)
    for name, forget, section in zip(raw.ids, raw.forget, raw.section, strict=True):
        assert name.startswith(f"{section}/{'forget' if forget else 'retain'}/")


def test_defaults_overlap_and_spread() -> None:
    """Forget texts are both clearly forget and ambiguous; the true ratio separates in part only."""
    raw = synthetic.load(plugin("dataset", "synthetic").defaults, Path("unused"))
    assert raw.log_density_ratio is not None
    forget = raw.log_density_ratio[raw.forget]
    retain = raw.log_density_ratio[~raw.forget]
    assert 0.4 < (forget > 1.5).mean() < 0.7
    assert 0.2 < (forget < 0.7).mean() < 0.5
    assert forget.std() > 1.2
    auc = (forget[:, None] > retain[None]).mean()
    assert 0.8 < auc < 0.95


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {"forget": [1.0], "retain": [0.5, 0.5]}}, "different lengths"),
        ({"weights": {"forget": [0.5, 0.4], "retain": [0.5, 0.5]}}, "sum to"),
        ({"weights": {"forget": [1.5, -0.5], "retain": [0.5, 0.5]}}, "sum to"),
        ({"words": [9, 3]}, "smaller number first"),
        ({"sizes": {"training": {"forget": 1, "retain": 1}}}, "'training'; known are"),
        ({"sizes": {"inference": {"forget": 1}}}, "give forget and retain"),
    ],
)
def test_bad_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(**changes)
