"""Texts that depend on each other: by their groups, and by neighbours that are too close."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from mamushi.cli import main
from mamushi.evidence.bootstrap import bands, few_groups, resample
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.dependence import close_texts, spacings
from mamushi.evidence.frontier import removal_order
from mamushi.evidence.verdict import auc_interval, share_bound
from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi.selection.metrics import NORMAL
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


def test_spacings_are_those_of_the_angles_by_a_plain_loop() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6))
    found, near = spacings(x, np.array([3, 17]))
    unit = x - x.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    for row, query in enumerate((3, 17)):
        away = np.linalg.norm(unit - unit[query], axis=1)
        order = np.argsort(away)[1:]
        assert near[row].tolist() == order[: near.shape[1]].tolist()
        for k in range(found.shape[1]):
            wanted = (k + 1) * np.log(away[order[k + 1]] / away[order[k]])
            assert found[row, k] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", ["normal", "few directions", "heavy tails", "topics", "bent"])
def test_of_independent_texts_few_worlds_are_said_to_be_too_close(kind: str) -> None:
    rng, forget, found = np.random.default_rng(0), np.arange(400) < 150, 0
    for _ in range(20):
        x = rng.normal(size=(400, 96))
        if kind == "few directions":
            x *= np.arange(1, 97) ** -1.0
        elif kind == "heavy tails":
            x /= np.sqrt(rng.chisquare(4, (400, 1)) / 4)
        elif kind == "topics":
            x += 1.5 * rng.normal(size=(8, 96))[rng.integers(8, size=400)]
        elif kind == "bent":
            x = np.tanh(x[:, :8] @ rng.normal(size=(8, 96)) / 2)
        found += close_texts(x + forget[:, None] * np.eye(96)[0], forget).dependent
    assert found <= 3


@pytest.mark.parametrize(("size", "icc"), [(2, 0.5), (5, 0.3), (2, 0.95)])
def test_groups_that_share_many_directions_are_seen_and_put_together(size: int, icc: float) -> None:
    rng, forget = np.random.default_rng(0), np.arange(400) < 150
    wide = np.concatenate([vectors(rng, n, 300, size, icc) for n in (150, 250)])
    seen = close_texts(wide, forget)
    assert seen.dependent and seen.looked_at == 400 and seen.texts >= 300
    truly = np.concatenate([np.arange(150) // size, 1000 + np.arange(250) // size])
    together = seen.groups[:, None] == seen.groups
    same = truly[:, None] == truly
    assert (together & same).sum() >= 0.8 * same.sum()
    assert (together & ~same).sum() <= 0.2 * same.sum()
    assert not close_texts(wide[:20], forget[:20]).looked_at


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
    assert (row["groups"], row["close_texts"]) == (about["groups"], about["close"])
    assert row["auc_low_by_close"] == about["auc_low"]
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    _, *ends = auc_interval(score, forget, groups=codes)
    assert [row["auc_low"], row["auc_high"]] == pytest.approx(ends)
    return verdict


def test_the_verdict_says_by_what_groups_it_judges(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([vectors(rng, n, 200, 2, 0.9) for n in (60, 120)])
    groups = [f"g{i // 2}" for i in range(180)]
    (tmp_path / "a").mkdir()
    grouped = staged(tmp_path / "a", groups, x)
    assert grouped["words"].endswith("; intervals are by 90 groups of texts")
    (tmp_path / "b").mkdir()
    found = staged(tmp_path / "b", None, x)
    # What texts that lie close would need is what their groups give.
    about = found["texts"]
    needed = f"[{about['auc_low']:.2f}, {about['auc_high']:.2f}]"
    for end in ("auc_low", "auc_high"):
        assert about[end] == pytest.approx(grouped[end], abs=0.02)
    assert "of 180 are too close to a neighbour for that: give the dataset a" in found["words"]
    assert f"the AUC's interval would be {needed})" in found["words"]
    assert found["auc_low"] > grouped["auc_low"]
    (tmp_path / "c").mkdir()
    alone = staged(tmp_path / "c", None, rng.normal(size=(180, 200)))
    assert alone["words"].endswith("independent: neighbours are no closer than chance makes them")
