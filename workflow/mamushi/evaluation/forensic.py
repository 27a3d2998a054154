"""Can one tell, from what models say of texts, that something was deleted from them, and what?

The first test has a pair of models for each seed, one of either kind, and asks a classifier that
has learned from the other seeds' pairs which is which. The second asks the same of texts that were
removed and texts of the same domain that no model has seen. Where exactly what was asked for is
gone, neither does better than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from mamushi.evaluation.paired import LEVEL, half_width
from mamushi.evaluation.sad import Floats

FOLDS = 5
FEWEST_TEXTS = 4 * FOLDS
"""Of either kind, below which a fold has too few."""
EXACT = 12
"""Most pairs of which all exchanges are looked at; of more, ``DRAWN`` by chance."""
DRAWN = 4096


@dataclass(frozen=True)
class ModelTest:
    """How often two kinds of models are told apart.

    ``share`` of the pairs in which the model of the first kind is named, by a classifier that has
    not seen the pair. ``low`` and ``high``: where that lies in 95 of 100 cases if the kinds do not
    differ. ``p``: how often a classifier does at least as well by chance; never below 2 / 2^S for S
    pairs.
    """

    share: float
    low: float
    high: float
    p: float


def tell_models_apart(first: Floats, second: Floats) -> ModelTest:
    """Test whether two kinds of models, ``first`` and ``second`` (S, n), differ.

    Rows are pairs of models, S of 2 or more, columns the margins of n texts. The classifier is the
    direction of the mean difference of the other pairs (linear discriminant analysis with equal
    variances: there are few models and many texts). Where the kinds do not differ, the two models
    of a pair can be exchanged. So ``p`` and the interval are those of all 2^S exchanges, exact for
    any distribution (a sign-flip test of the sum of the products of all differences).
    """
    apart = first - second
    products = apart @ apart.T
    np.fill_diagonal(products, 0.0)
    pairs = len(products)
    if pairs <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=pairs)))
    else:
        drawn = np.random.default_rng(0).choice((1.0, -1.0), (DRAWN - 1, pairs))
        signs = np.concatenate([np.ones((1, pairs)), drawn])
    named = signs * (signs @ products)
    share = np.mean((named > 0) + 0.5 * (named == 0), axis=1)
    total = named.sum(axis=1)
    # Sums that are the same but for rounding are the same.
    reached = total >= total[0] - 1e-9 * abs(total[0])
    low, high = np.quantile(share, [LEVEL / 2, 1 - LEVEL / 2])
    return ModelTest(float(share[0]), float(low), float(high), float(reached.mean()))


def pairs_needed() -> int:
    """Return the fewest pairs of which p can be below ``LEVEL``."""
    return next(pairs for pairs in range(1, 99) if 2.0 ** (1 - pairs) < LEVEL)


@dataclass(frozen=True)
class TextTest:
    """AUC of removed against unseen texts in one model, and its variance over texts."""

    auc: float
    variance: float


def name_removed_texts(removed: Floats, unseen: Floats) -> TextTest:
    """Test how well a classifier names the removed texts among unseen ones.

    ``removed`` (n1,) and ``unseen`` (n0,), ``FEWEST_TEXTS`` or more each: how a text's margin under
    the model differs from that under gold models. The classifier is linear in that and its square
    (Fisher's discriminant, by least squares), since deletion can push a likelihood too low as well
    as leave it too high, and is fitted to the texts of the other four of five folds. The AUC is the
    mean of the folds', which have thresholds of their own; its variance is that of DeLong et al.
    1988, by the shares of the other kind that each text is above.
    """
    rng = np.random.default_rng(0)
    values = np.concatenate([removed, unseen])
    truth = np.repeat([True, False], [len(removed), len(unseen)])
    folds = np.concatenate(
        [rng.permutation(np.arange(n) % FOLDS) for n in map(len, (removed, unseen))]
    )
    above = np.empty(len(values))
    aucs = []
    for fold in range(FOLDS):
        here = folds == fold
        centre, scale = np.median(values[~here]), values[~here].std() or 1.0
        # Bounded, so that a text under which a model has gone wild does not decide by itself.
        x = np.clip((values - centre) / scale, -3, 3)
        features = np.column_stack([np.ones(len(x)), x, x**2])
        score = features @ np.linalg.lstsq(features[~here], truth[~here], rcond=None)[0]
        ones, zeros = score[here & truth], score[here & ~truth]
        wins = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
        above[here & truth], above[here & ~truth] = wins.mean(axis=1), wins.mean(axis=0)
        aucs.append(wins.mean())
    parts = [above[truth], above[~truth]]
    return TextTest(
        float(np.mean(aucs)), float(sum(part.var(ddof=1) / len(part) for part in parts))
    )


def mean_over_seeds(found: Sequence[TextTest]) -> tuple[float, float, float]:
    """Return the mean AUC over seeds with its 95% interval, over texts and seeds.

    The texts are mostly the same for all seeds, and so their part of the variance is not divided by
    the number of seeds; there are many.
    """
    aucs = np.array([each.auc for each in found])
    half = half_width(aucs, float(np.mean([each.variance for each in found])), np.inf)
    mean = float(aucs.mean())
    return mean, mean - half, mean + half
