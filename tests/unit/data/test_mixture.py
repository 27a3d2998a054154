"""The synthetic densities: the exact ratio against loops over the definition and against all texts
of a length, the draws, and what the worlds let a bag of words see."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.metrics import roc_auc_score

from mamushi.data import mixture as model
from mamushi.data.loaders import synthetic
from mamushi.data.raw import Raw
from mamushi.registry import plugin

WEIGHTS = np.array([[0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])
WORLDS = [{"world": "lexical", "synonyms": 1}, {"world": "transition", "synonyms": 2}]
worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w['world']}-{w['synonyms']}")


def settings(**changes: Any) -> dict[str, Any]:
    small = {
        name: {"forget": 30, "retain": 50} for name in ("contamination", "inference", "evaluation")
    }
    return plugin("dataset", "synthetic").defaults | {"sizes": small} | changes


def load(**changes: Any) -> Raw:
    return synthetic.load(settings(**changes), Path("unused"))


def densities_by_loops(mixture: model.Mixture, text: str) -> list[float]:
    """p1 and p2 of a text given its length, from the definition: products of probabilities, word by
    word."""
    concepts = mixture.backbone.shape[1]
    synonyms = len(mixture.words) // concepts
    words = [mixture.words.index(word) // synonyms for word in text.split()]
    density = [0.0, 0.0]
    for domain in range(2):
        for c in range(len(mixture.topics)):
            probability = 1.0
            for t, word in enumerate(words):
                before = concepts if t == 0 else words[t - 1]
                common = mixture.backbone[before, word]
                same_after_all = len(mixture.topics[c]) == 1
                topic = mixture.topics[c, 0 if same_after_all else before, word]
                share = mixture.topic_share
                probability *= ((1 - share) * common + share * topic) / synonyms
            density[domain] += mixture.weights[domain, c] * probability
    return density


@worlds
def test_densities_sum_to_1_and_draws_follow_them(world: dict[str, Any]) -> None:
    """Over all texts of three words, in both domains; ratios are those of the summed densities."""
    mixture = model.make(4, WEIGHTS, 0.6, 0, **world)
    texts = [" ".join(words) for words in product(mixture.words, repeat=3)]
    densities = np.array([densities_by_loops(mixture, text) for text in texts])
    np.testing.assert_allclose(densities.sum(axis=0), 1)
    truth = dict(zip(texts, np.log(densities[:, 0] / densities[:, 1]), strict=True))
    n = 40_000
    for domain in range(2):
        rng = np.random.default_rng([1, domain])
        tokens, component = model.draw(mixture, np.full(n, domain), (3, 3), rng)
        np.testing.assert_allclose(np.bincount(component) / n, WEIGHTS[domain], atol=0.01)
        drawn = [*model.spell(mixture, tokens, rng)]
        ratio = model.log_density_ratio(mixture, tokens)
        np.testing.assert_allclose(ratio, [truth[text] for text in drawn])
        places = {text: i for i, text in enumerate(texts)}
        observed = np.bincount([places[text] for text in drawn], minlength=len(texts))
        # Rare texts together, so that the statistic is chi-squared.
        expected = n * densities[:, domain]
        rare = expected < 5
        binned = [np.append(x[~rare], x[rare].sum()) for x in (observed, expected)]
        if not rare.any():
            binned = [x[:-1] for x in binned]
        assert chisquare(*binned).pvalue > 1e-4


@worlds
def test_label_noise_has_its_shares_and_leaves_the_truth_alone(world: dict[str, Any]) -> None:
    noise = {"forget_in_retain": 0.1, "retain_in_forget": 0.2}
    raw, clean = load(noise=noise, **world), load(**world)
    assert "true_domain" not in clean.labels
    forget = np.array(raw.labels["true_domain"]) == "forget"
    section = np.array(raw.section)
    for name, in_forget, in_retain in (
        ("contamination", 6, 5),
        ("inference", 6, 5),
        ("evaluation", 0, 0),
    ):
        there = section == name
        assert (raw.forget & ~forget & there).sum() == in_forget
        assert (~raw.forget & forget & there).sum() == in_retain
    assert [t for t, s in zip(raw.texts, section, strict=True) if s == "evaluation"] == [
        t for t, s in zip(clean.texts, section, strict=True) if s == "evaluation"
    ]
    # Hidden texts are spread over their cell, and come from their true density.
    assert np.flatnonzero(raw.forget & ~forget).max() > 6
    raw = load(noise={"forget_in_retain": 1, "retain_in_forget": 1}, **world)
    assert raw.log_density_ratio is not None
    labelled = section != "evaluation"
    np.testing.assert_array_equal(
        raw.forget[labelled], np.array(raw.labels["true_domain"])[labelled] == "retain"
    )
    assert roc_auc_score(raw.forget[labelled], raw.log_density_ratio[labelled]) < 0.3
    assert roc_auc_score(raw.forget[~labelled], raw.log_density_ratio[~labelled]) > 0.7
