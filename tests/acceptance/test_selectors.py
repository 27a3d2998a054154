"""Rankings of real texts by SmolLM2's embeddings: in both precisions, and against scikit-learn."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool, Scored

pytestmark = pytest.mark.slow

NETWORKS = 5
"""Of the 25 by default, for the time that they take."""


def scored(name: str, pool: Pool, seed: int = 0, **changes: Any) -> Scored:
    settings = plugin("selector", name).defaults | changes
    return load("selector", name).score(pool, settings, seed)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(spearmanr(one, other).statistic)


def test_a_ranking_in_bf16_is_that_in_fp32(pools: dict[str, Pool]) -> None:
    """Forward passes in bf16 cost less than 0.005 of Spearman's correlation (measured: 0.001 on
    posts, 0.003 on made-up texts), and of the first tenth at most a fifth (measured: none and 5%).
    Two seeds differ by more."""
    forget = pools["fp32"].forget
    fp32, bf16 = (
        scored("mamushi", pools[precision], seeds_averaged=NETWORKS).scores[forget]
        for precision in ("fp32", "bf16")
    )
    tenth = len(fp32) // 10
    first = [{*np.argsort(-scores)[:tenth]} for scores in (fp32, bf16)]
    assert correlation(fp32, bf16) > 0.995
    assert len(first[0] & first[1]) >= 0.8 * tenth


def networks(pool: Pool, seed: int) -> np.ndarray:
    """Held-out logits of ``NETWORKS`` cross-fittings by scikit-learn alone, brought to a common
    offset and scale and averaged."""
    x, total = pool.embeddings.astype(np.float32), np.zeros(len(pool.forget))
    for number in range(NETWORKS * seed, NETWORKS * (seed + 1)):
        folds = StratifiedKFold(5, shuffle=True, random_state=number)
        for train, held in folds.split(x, pool.forget):
            scaler, y = StandardScaler().fit(x[train]), pool.forget[train]
            model = MLPClassifier(
                (1024, 512, 256),
                alpha=0.1,
                batch_size=len(train),
                max_iter=50,
                early_stopping=True,
                n_iter_no_change=5,
                random_state=number,
            )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Got `batch_size` less than 1 or larger")
                weight = compute_sample_weight("balanced", y)
                model.fit(scaler.transform(x[train]), y, sample_weight=weight)
            share = model.predict_proba(scaler.transform(x[held])).astype(np.float64)
            logits = np.diff(np.log(np.maximum(share, 1e-12)))[:, 0]
            total[held] += (logits - logits.mean()) / logits.std()
    return total


def test_the_mlp_is_as_good_as_scikit_learns_and_ranks_alike(pools: dict[str, Pool]) -> None:
    """``MLPClassifier`` stops by the accuracy on what is held out, here it is the loss. It is no
    further away than a second seed of its own, but for a twentieth of Spearman's correlation."""
    pool = pools["fp32"]

    def ours(seed: int) -> np.ndarray:
        return scored("mamushi", pool, seed, seeds_averaged=NETWORKS, precision="fp32").scores

    def both(method: Callable[[int], np.ndarray]) -> list[np.ndarray]:
        return [method(seed) for seed in range(2)]

    mine, theirs = both(ours), both(lambda seed: networks(pool, seed))
    quality = [np.mean([roc_auc_score(pool.forget, s) for s in side]) for side in (mine, theirs)]
    least = min(correlation(one, other) for one in mine for other in theirs)
    assert abs(quality[0] - quality[1]) < 0.02
    assert least > correlation(*theirs) - 0.05
