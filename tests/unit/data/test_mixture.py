"""The synthetic densities: the exact ratio against loops over the definition and against all texts
of a length, the draws, and what the worlds let a bag of words see."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from mamushi.data import mixture as model

WEIGHTS = np.array([[0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])
WORLDS = [{"world": "lexical", "synonyms": 1}, {"world": "transition", "synonyms": 2}]
worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w['world']}-{w['synonyms']}")


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
    mixture = model.draw_mixture(4, WEIGHTS, 0.6, 0, **world)
    texts = [" ".join(words) for words in product(mixture.words, repeat=3)]
    densities = np.array([densities_by_loops(mixture, text) for text in texts])
    np.testing.assert_allclose(densities.sum(axis=0), 1)
    truth = dict(zip(texts, np.log(densities[:, 0] / densities[:, 1]), strict=True))
    n = 40_000
    for domain in range(2):
        rng = np.random.default_rng([1, domain])
        tokens, component = model.draw(mixture, domain, n, (3, 3), rng)
        np.testing.assert_allclose(np.bincount(component) / n, WEIGHTS[domain], atol=0.01)
        drawn = model.spell_texts(mixture, tokens, rng)
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
