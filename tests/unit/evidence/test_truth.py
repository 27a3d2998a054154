"""By the exact ratio nothing beats the oracle. What that is where labels are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mamushi.evidence.frontier import Frontier, RemovalOrder, removal_order
from mamushi.evidence.truth import achieved, ratio_of_labels
from mamushi.io.domains import INFERENCE
from mamushi.registry import load, plugin
from tests.support.score_files import ranks_of

ROOT = Path(__file__).parents[3]
DEMO = "profiles/demo/science.yaml"
LAB = "studies/lab/config.yaml"
WORLDS = [
    (DEMO, "synthetic"),
    *((LAB, name) for name in ("lexical", "transition", "semantic", "mixed_length", "noisy")),
]


def drawn(place: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact log ratios and labels of the texts that are ranked of a world."""
    config = yaml.safe_load((ROOT / place).read_text(encoding="utf-8"))["datasets"][name]
    settings: dict[str, Any] = {**plugin("dataset", "synthetic").defaults, **config}
    raw = load("dataset", "synthetic").load(settings, Path())
    ranked = np.array(raw.section) == INFERENCE
    log_ratio, forget = np.asarray(raw.log_density_ratio)[ranked], np.asarray(raw.forget)[ranked]
    if "true_domain" in raw.labels:
        truly = np.asarray(raw.labels["true_domain"])[ranked] == "forget"
        log_ratio = ratio_of_labels(log_ratio, forget, truly)
    return log_ratio, forget


def curves(log_ratio: np.ndarray, forget: np.ndarray, **scores: np.ndarray) -> dict[str, Any]:
    """Removal and preservation of selectors at every count; ``chance`` is by chance."""
    rankings = {
        name: removal_order(
            score[forget], ranks_of(score[forget]), score[~forget], name == "chance"
        )
        for name, score in scores.items()
    }
    rows = [
        {"selector": name, "removed": count}
        for name in rankings
        for count in range(int(forget.sum()) + 1)
    ]
    found = achieved(rows, rankings, log_ratio, forget)
    return {
        name: np.array(
            [
                (row["removal_true"], row["preservation_true"])
                for row in found
                if row["selector"] == name
            ]
        ).T
        for name in rankings
    }


@pytest.mark.parametrize(("place", "name"), WORLDS)
def test_nothing_beats_the_oracle_by_the_truth(place: str, name: str) -> None:
    """Proposition "optimal selection", for every count; by the estimate its own selector would."""
    log_ratio, forget = drawn(place, name)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3, len(forget)))
    scores = {
        "oracle": log_ratio,
        "noisy": 3 * log_ratio + noise[0],
        "flat": np.tanh(log_ratio) + noise[1],
        "reverse": -log_ratio,
        "chance": noise[2],
    }
    found = curves(log_ratio, forget, **scores)
    oracle = found["oracle"]
    for other in scores.keys() - {"oracle"}:
        assert (oracle[0] >= found[other][0] - 1e-12).all()
        # A share of all is no region, and a thin one left behind harms less: see below.
        regions = 0.96 if other == "chance" else 1.0
        upto = int(regions * forget.sum()) + 1
        assert (oracle[1] <= found[other][1] + 1e-12)[:upto].all()
        assert (oracle[0] > found[other][0] + 1e-3).any()
    estimate = scores["noisy"] / 3
    order = RemovalOrder(np.argsort(-log_ratio[forget], kind="stable"), False, None)
    rival = RemovalOrder(np.argsort(-estimate[forget], kind="stable"), False, None)
    counts = np.arange(int(forget.sum()) + 1)
    of_oracle, of_rival = (
        Frontier(of, estimate[forget], estimate[~forget], float(forget.mean())).at(counts)[0]
        for of in (order, rival)
    )
    assert (of_rival >= of_oracle - 1e-12).all() and (of_rival > of_oracle + 1e-4).any()


def test_the_ratio_of_labels_some_of_which_are_wrong() -> None:
    """Of densities on three points: a quarter of what is labelled forget is drawn from p2."""
    p1, p2 = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    forget = np.repeat([True, False], [4, 10])
    truly = np.array([True] * 3 + [False] + [False] * 9 + [True])
    points = np.arange(14) % 3
    found = ratio_of_labels(np.log(p1 / p2)[points], forget, truly)
    labelled = (0.75 * p1 + 0.25 * p2) / (0.9 * p2 + 0.1 * p1)
    np.testing.assert_allclose(found, np.log(labelled)[points], atol=1e-12)
    right = ratio_of_labels(np.log(p1 / p2)[points], forget, forget)
    np.testing.assert_allclose(right, np.log(p1 / p2)[points], atol=1e-12)
