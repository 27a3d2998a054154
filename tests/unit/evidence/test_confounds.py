"""What scores follow beside the domain: against SciPy and scikit-learn, and by simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm, spearmanr
from sklearn.metrics import roc_auc_score

from mamushi.evidence.confounds import (
    TextProperties,
    confound_rows,
    correlation,
    leaking_columns,
    read_texts,
    stratified_auc,
)
from mamushi.evidence.verdict import untold
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.score_files import write_examples


def one(score: np.ndarray) -> np.ndarray:
    return np.zeros(len(score), dtype=np.int64)


def texts(n: int, seed: int = 0, **labels: np.ndarray) -> TextProperties:
    rng = np.random.default_rng(seed)
    return TextProperties(
        rng.integers(5, 100, n).astype(float), rng.poisson(1, n).astype(float), labels
    )


def rows_of(found: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in found if all(row[k] == v for k, v in wanted.items())]


def test_a_correlation_is_scipys_and_its_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(0)
    rho = 6 / np.pi * np.arcsin(0.5 / 2)  # Spearman's of a normal pair with Pearson's 0.5
    held = {0.0: 0, rho: 0}
    for truth, pearson in ((0.0, 0.0), (rho, 0.5)):
        for i in range(1000):
            a, b = rng.multivariate_normal([0, 0], [[1, pearson], [pearson, 1]], 60).T
            found = correlation(a, b)
            assert found is not None
            assert i % 50 or found[0] == pytest.approx(spearmanr(a, b).statistic)
            held[truth] += found[1] <= truth <= found[2]
    assert all(930 <= count <= 970 for count in held.values())
    assert correlation(np.ones(9), np.arange(9.0)) is None
    assert correlation(np.arange(9.0), np.arange(9.0)) == (1.0, 1.0, 1.0)


def test_an_area_is_sklearns_and_its_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(0)
    for shift in (0.0, 2.0):
        truth, held = float(norm.cdf(shift / np.sqrt(2))), 0
        for i in range(500):
            positive = np.arange(150) < 50
            score = rng.normal(size=150) + shift * positive
            found, used = stratified_auc(score, positive, one(score))
            assert found is not None and used == 150
            assert i % 50 or found[0] == pytest.approx(roc_auc_score(positive, score))
            held += found[1] <= truth <= found[2]
        assert 460 <= held <= 490


def test_of_doubled_texts_intervals_by_groups_are_those_of_half_of_them() -> None:
    rng = np.random.default_rng(0)
    forget = np.arange(400) < 200
    label = rng.choice(["a", "b"], 400).astype(object)
    score = rng.normal(size=400) + 0.5 * forget + 0.3 * (label == "a")
    known = texts(400, label_kind=label)
    doubled = TextProperties(
        *(np.repeat(x, 2) for x in (known.words, known.copies)),
        {"label_kind": np.repeat(label, 2)},
        np.arange(800) // 2,
    )
    once = confound_rows(score, forget, known, cross_fitted=True)
    twice = confound_rows(np.repeat(score, 2), np.repeat(forget, 2), doubled, cross_fitted=True)
    naive = confound_rows(
        np.repeat(score, 2), np.repeat(forget, 2), replace(doubled, groups=None), cross_fitted=True
    )
    assert len(once) == len(twice) == len(naive)
    for row, mended, narrow in zip(once, twice, naive, strict=True):
        assert mended["estimate"] == pytest.approx(row["estimate"], abs=0.01)
        width, as_wide, half = (one["high"] - one["low"] for one in (row, mended, narrow))
        assert as_wide == pytest.approx(width, rel=0.12)
        assert half < 0.8 * width
    few = replace(doubled, groups=np.arange(800) // 100)
    (row, *_) = confound_rows(np.repeat(score, 2), np.repeat(forget, 2), few)
    assert row["why"] == "4 groups of texts differ from the others"


def test_texts_are_read_in_the_order_of_scores(tmp_path: Path) -> None:
    rng, ids = np.random.default_rng(0), [f"t{i:03d}" for i in range(120)]
    words = rng.integers(1, 40, len(ids))
    domain = ["forget" if i % 2 else "retain" for i in range(len(ids))]
    labels = {
        "text": [" ".join(["word"] * n) for n in words],
        "label_flag": [bool(n > 20) for n in words],
        "label_topic": pa.array(["a", "b", "c"] * 40).dictionary_encode(),
    }
    write_examples(tmp_path / "examples.parquet", ids, domain, **labels)
    kept = [ids[i] for i in range(0, len(ids), 3) for _ in range(2)] + [None]
    duplicates = {
        "id": [f"copy{i}" for i in range(len(kept))],
        "kept_id": pa.array(kept, pa.string()),
        "reason": ["exact"] * len(kept),
        "text_sha256": [""] * len(kept),
    }
    write_table(tmp_path / "duplicates.parquet", schemas.DUPLICATES, duplicates)
    known = read_texts(tmp_path / "examples.parquet", tmp_path / "duplicates.parquet", ids[::-1])
    forget = np.array(domain[::-1]) == "forget"
    rows = confound_rows(words[::-1].astype(float), forget, known)
    followed = rows_of(rows, confound="words", measure="spearman")
    assert [row["estimate"] for row in followed] == [pytest.approx(1.0)] * 2
    assert all(row["estimate"] > 0.8 for row in rows_of(rows, confound="label_flag"))
    topics = rows_of(rows, confound="label_topic")
    assert [row["value"] for row in topics] == ["a", "b", "c"] * 2
    copies = rows_of(rows, confound="copies")
    assert [row["why"] for row in copies] == [None, None]


# Columns that nobody named


def columns_of_world(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """A score that follows the domain alone, and ten columns that know nothing of either."""
    rng = np.random.default_rng(seed)
    forget = rng.random(n) < rng.uniform(0.1, 0.5)
    counts = rng.choice([2, 5, 20, 50], 4)
    categories = [np.array([f"v{i}" for i in rng.integers(k, size=n)], object) for k in counts]
    gaps = np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n))
    numbers = [*rng.normal(size=(3, n)), np.cumsum(rng.exponential(size=n)), gaps]
    columns = [*categories, *numbers, rng.poisson(0.2, n).astype(float)]
    named = {f"column {place}": values for place, values in enumerate(columns)}
    return rng.normal(size=n) + forget * rng.uniform(0.3, 1.5), forget, named


@pytest.mark.parametrize("n", [60, 150, 400])
def test_columns_that_know_nothing_are_named_in_few_worlds(n: int) -> None:
    worlds = (columns_of_world(seed, n) for seed in range(100))
    assert sum(bool(leaking_columns(*world, cross_fitted=True)) for world in worlds) <= 5


def test_a_source_that_gives_the_label_away_is_named_with_what_is_left_among_equal_ones() -> None:
    for seed, true in ((0, 1.5), (1, 0.0)):
        rng = np.random.default_rng(seed)
        forget = rng.random(800) < 0.4
        theirs = np.where(rng.random(800) < 0.9, forget, ~forget)
        score = rng.normal(size=800) + 2 * theirs + true * forget
        source = np.where(theirs, "them", "us").astype(object)
        columns = {"source": source, "noise": rng.normal(size=800), "label": forget.astype(float)}
        rows = {row["column"]: row for row in leaking_columns(score, forget, columns)}
        assert [*rows] == ["source", "label"] and rows["label"]["auc"] is None
        within = norm.cdf(true / np.sqrt(2))
        assert rows["source"]["low"] < within < rows["source"]["high"]
        # Where nothing is left, no budget is named.
        reason = untold([*rows.values()])
        assert (reason is None) == (true > 0)
