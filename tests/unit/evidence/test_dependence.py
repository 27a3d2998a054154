"""Texts that depend on each other: by their groups, and where near ones share their domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from mamushi.cli import main
from mamushi.evidence import dependence
from mamushi.evidence.bootstrap import bands, few_groups, resample
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.dependence import HIDDEN, Dependence, hidden_groups, z_of_pairs
from mamushi.evidence.frontier import removal_order
from mamushi.evidence.verdict import (
    auc_interval,
    auc_of_right_labels,
    auc_words,
    share_bound,
)
from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi.selection.metrics import NORMAL, auc
from tests.support.score_files import (
    domains,
    ranks_of,
    write_embeddings,
    write_examples,
    write_refits,
    write_scores,
)

Doubles = NDArray[np.float64]


def vectors(rng: np.random.Generator, n: int, d: int, size: int, icc: float) -> Doubles:
    """Vectors (n, d) of which as many as ``size`` share a part."""
    shared = rng.normal(size=(n, d))[np.arange(n) // size]
    return np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.normal(size=(n, d))


def test_z_is_that_of_all_pairs_by_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(0), 50
    angles = rng.normal(size=(n, 6))
    angles /= np.linalg.norm(angles, axis=1, keepdims=True)
    smooth, _ = np.linalg.qr(np.column_stack([np.ones(n), angles]))
    out = np.eye(n) - smooth @ smooth.T
    rest = out @ rng.normal(size=n)
    near = np.clip(angles @ angles.T, 0, 0.5) ** 3
    np.fill_diagonal(near, 0)
    near = out @ near @ out
    np.fill_diagonal(near, 0)
    pairs = np.outer(rest, rest)
    wanted = (near * pairs).sum() / np.sqrt(2 * (near**2 * pairs**2).sum())
    assert z_of_pairs(angles, rest, smooth) == pytest.approx(wanted)
    monkeypatch.setattr(dependence, "CELLS", 7 * n)
    assert z_of_pairs(angles, rest, smooth) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["normal", "wide", "few directions", "heavy tails", "topics"])
def test_of_independent_texts_few_worlds_seem_to_have_groups(kind: str) -> None:
    rng, forget, found = np.random.default_rng(0), np.arange(400) < 150, []
    d = 600 if kind == "wide" else 48
    for _ in range(20):
        x = rng.normal(size=(400, d))
        if kind == "few directions":
            x *= np.arange(1, d + 1) ** -1.0
        elif kind == "heavy tails":
            x /= np.sqrt(rng.chisquare(4, (400, 1)) / 4)
        elif kind == "topics":
            x += 1.5 * rng.normal(size=(4, d))[rng.integers(4, size=400)]
        found.append(hidden_groups(x + forget[:, None] * np.eye(d)[0], forget))
    assert sum(one.reason is not None for one in found) <= 4
    assert {one.looked_at for one in found} == {400}


@pytest.mark.parametrize(("size", "icc"), [(2, 0.6), (5, 0.3), (20, 0.3)])
def test_groups_within_a_domain_are_seen(size: int, icc: float) -> None:
    rng, forget = np.random.default_rng(0), np.arange(600) < 200
    found = []
    for _ in range(5):
        x = np.concatenate([vectors(rng, n, 32, size, icc) for n in (200, 400)])
        found.append(hidden_groups(x + forget[:, None] * np.eye(32)[0], forget).reason)
    assert sum(reason is not None for reason in found) >= 4


@pytest.mark.parametrize(
    ("z", "ends"),
    [(None, (0.8, 0.95)), (-2.0, (0.8, 0.95)), (1.0, (0.7, 0.95)), (1.7, (None, None))],
)
def test_what_near_texts_share_moves_the_lower_end_or_withholds_all(
    z: float | None, ends: tuple[float | None, float | None]
) -> None:
    assert Dependence(None, 100, z).ends(0.9, 0.8, 0.95) == pytest.approx(ends)
    assert Dependence(None, 100, 1.5).ends(0.5, 0.2, 0.8)[0] == 0


def test_the_auc_against_the_right_labels_by_a_count_of_pairs() -> None:
    """Of scores whose labels are flipped at random, a fifth of them in each domain."""
    rng, n = np.random.default_rng(0), 40_000
    forget = np.arange(n) < n // 2
    score = rng.normal(size=n) + forget
    flipped = forget ^ (rng.random(n) < 0.2)
    assert auc_of_right_labels(auc(score, flipped), 0.2) == pytest.approx(
        auc(score, forget), abs=0.015
    )
    assert auc_of_right_labels(0.99) == 1
    assert auc_words(0.9, 0.8, 0.92) == (
        "AUC 0.90 [0.80, 0.92], up to 0.97 if 5% of the labels are wrong at random"
    )
    assert auc_words(1.0, 0.9, 1.0) == "AUC 1.00 [0.90, 1.00]"


def test_resamples_draw_groups_whole_within_domains_and_over_both() -> None:
    rng = np.random.default_rng(0)
    forget = np.arange(60) < 20
    groups = np.concatenate([np.arange(20) // 2, 5 + np.arange(40) // 4])
    means = []
    for _ in range(400):
        weights = resample(forget, rng, groups)
        assert weights[forget].sum() == pytest.approx(20)
        assert weights[~forget].sum() == pytest.approx(40)
        for group in np.unique(groups):
            own = weights[(groups == group) & forget], weights[(groups == group) & ~forget]
            assert all(np.ptp(each) == 0 for each in own if len(each))
        both = groups[(groups >= 5) & forget]
        for group in both:
            drawn = [weights[(groups == group) & domain].any() for domain in (forget, ~forget)]
            assert drawn[0] == drawn[1]
        means.append(weights)
    assert np.abs(np.mean(means, axis=0) - 1).max() < 0.25
    alone, again = (resample(forget, np.random.default_rng(1), g) for g in (None, np.arange(60)))
    assert np.array_equal(alone, again)


def test_bands_of_texts_five_times_by_groups_are_those_of_each_once() -> None:
    rng, forget = np.random.default_rng(0), np.arange(300) < 120
    score = rng.normal(size=300) + 1.5 * forget

    def band(times: int, groups: NDArray[np.int64] | None) -> tuple[float, float]:
        """The width of removal's band at half of the forget set, and of its nearer side."""
        one, s = np.repeat(forget, times), np.repeat(score, times)
        ranks = removal_order(s[one], ranks_of(s[one]), s[~one], by_chance=False)
        n1 = int(one.sum())
        scores = RatioScores(s, one, np.zeros(len(s), np.int64), groups=groups)
        found = bands(scores, {"own": ranks}, np.array([0, n1 // 2, n1]), 150, 0)["own"]["removal"]
        return float(found.high[1] - found.low[1]), float(found.value[1] - found.low[1])

    once, naive, mended = band(1, None), band(5, None), band(5, np.arange(1500) // 5)
    assert mended == pytest.approx(once, rel=0.15)
    assert naive[1] < 0.85 * once[1]
    assert few_groups(forget, None) == 1.0
    assert few_groups(forget, np.arange(300) // 12) == pytest.approx(
        np.sqrt(10 / 9) * t.ppf(0.975, 9) / NORMAL
    )


def test_the_bound_on_the_retain_share_of_texts_that_are_all_fives() -> None:
    """Of uniform scores, five of a kind: as with a fifth of the texts, and without it it fails."""
    rng, held, wrong = np.random.default_rng(0), [], []
    groups = np.arange(200) // 5
    for _ in range(300):
        score = np.repeat(rng.random(40), 5)
        at = [np.nextafter(t, 2) for t in np.unique(score)]
        held.append(all(share_bound(score, t, 1.0, groups)[1] >= 1 - t - 1e-9 for t in at))
        wrong.append(all(share_bound(score, t, 1.0)[1] >= 1 - t - 1e-9 for t in at))
    assert np.mean(held) >= 0.95
    assert np.mean(wrong) < 0.9


def staged(root: Path, groups: list[str] | None, x: Doubles) -> dict[str, Any]:
    """The verdict of the stage, whose table diagnostics say the same."""
    n = len(x)
    forget = np.arange(n) < n // 3
    ids, named = [f"t{i:03d}" for i in range(n)], domains(forget)
    score = x[:, 0] + forget
    write_examples(root / "examples.parquet", ids, named, **({"group": groups} if groups else {}))
    write_embeddings(root / "embeddings.parquet", ids, named, x.astype(np.float16))
    fold = (np.arange(n) // 10) % 5
    write_scores(
        root / "scores.parquet", ids, named, score, fold=fold,
        metadata={"provenance": {"inputs": {}}},
    )  # fmt: skip
    write_refits(root / "refits.parquet", ids, named, [("whole", 0, score)], fold)
    cell = {"dataset": "d", "model": "m", "seed": 0}
    options = [f"--{name}={root / name}.parquet" for name in ("examples", "embeddings", "scores")]
    options += [f"--refits={root / 'refits'}.parquet", f"--checks={root / 'checks'}.parquet"]
    options += [f"--out={root / 'calibrated'}.parquet", "--settings"]
    asked = json.dumps({**cell, "selector": "s", "resamples": 10})
    assert main(["calibrate", *options, asked]) == 0
    options = [f"--scores={root / 'scores'}.parquet", "--settings"]
    options += [
        json.dumps({**cell, "selectors": ["s"]}),
        f"--calibrated={root / 'calibrated'}.parquet",
    ]
    assert main(["diagnostics", *options, f"--out={root / 'out'}.parquet"]) == 0
    verdict: dict[str, Any] = read_metadata(root / "calibrated.parquet")["verdict"]
    (row,) = read_table(root / "out.parquet", schemas.DIAGNOSTICS).to_pylist()
    about = verdict["texts"]
    assert (row["groups"], row["near_alike"]) == (about["groups"], about["z"])
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    ends = Dependence(**about).ends(*auc_interval(score, forget, groups=codes))
    assert [row["auc_low"], row["auc_high"]] == pytest.approx(ends)
    assert ends == pytest.approx((verdict["auc_low"], verdict["auc_high"]))
    return verdict


def test_the_verdict_says_by_what_groups_it_judges(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([vectors(rng, n, 200, 2, 0.9) for n in (60, 120)])
    groups = [f"g{i // 2}" for i in range(180)]
    for name in "abc":
        (tmp_path / name).mkdir()
    grouped = staged(tmp_path / "a", groups, x)
    assert grouped["words"].endswith("; intervals are by 90 groups of texts")
    found = staged(tmp_path / "b", None, x)
    assert found["auc_low"] is found["auc_high"] is None
    assert found["words"].endswith(f"; no interval holds: {HIDDEN}")
    assert found["withheld"] == HIDDEN
    alone = staged(tmp_path / "c", None, rng.normal(size=(180, 200)))
    assert alone["words"].endswith("groups are not seen)")
    assert alone["auc_low"] is not None
