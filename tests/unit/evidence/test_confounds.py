"""What scores follow beside the domain: against SciPy and scikit-learn, and by simulation."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm, spearmanr
from sklearn.metrics import roc_auc_score

from mamushi.data.labels import read_texts
from mamushi.evidence.confounds import correlation, leaking_columns, stratified_auc, stratum
from mamushi.evidence.verdict import leak_reason
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.score_files import write_examples


def test_intervals_hold_the_truth() -> None:
    """Of Spearman's correlation of a normal pair with Pearson's 0 or 0.5, and of an AUC."""
    rng, positive = np.random.default_rng(0), np.arange(150) < 50
    for pearson, shift in ((0.0, 0.0), (0.5, 2.0)):
        rho, area = 6 / np.pi * np.arcsin(pearson / 2), float(norm.cdf(shift / np.sqrt(2)))
        held = np.zeros(2)
        for i in range(600):
            a, b = rng.multivariate_normal([0, 0], [[1, pearson], [pearson, 1]], 60).T
            score = rng.normal(size=150) + shift * positive
            pair = correlation(a, b)
            among = stratified_auc(score, positive, np.zeros(150, dtype=np.int64))
            assert pair and among
            assert i % 50 or pair[0] == pytest.approx(spearmanr(a, b).statistic)
            assert i % 50 or among[0] == pytest.approx(roc_auc_score(positive, score))
            held += [pair[1] <= rho <= pair[2], among[1] <= area <= among[2]]
        assert (held >= 553).all() and (held <= 587).all()
    assert correlation(np.ones(9), np.arange(9.0)) is None


def test_of_doubled_texts_intervals_by_groups_are_those_of_half_of_them() -> None:
    rng = np.random.default_rng(0)
    forget, words = np.arange(400) < 200, rng.integers(5, 100, 400).astype(float)
    score = rng.normal(size=400) + 0.5 * forget + words / 50
    twice, groups = [np.repeat(x, 2) for x in (score, forget, words)], np.arange(800) // 2
    for measured in (
        lambda s, forget, words, groups: correlation(s, words, groups),
        lambda s, forget, words, groups: stratified_auc(s, forget, stratum(words), 1.0, groups),
    ):
        once, mended, naive = (
            measured(score, forget, words, None), measured(*twice, groups), measured(*twice, None),
        )  # fmt: skip
        assert once and mended and naive
        assert mended[0] == pytest.approx(once[0], abs=0.01)
        assert mended[2] - mended[1] == pytest.approx(once[2] - once[1], rel=0.12)
        assert naive[2] - naive[1] < 0.8 * (once[2] - once[1])


def test_texts_are_read_in_the_order_of_scores(tmp_path: Path) -> None:
    ids, topics = ["t0", "t1", "t2"], pa.array([*"aba"]).dictionary_encode()
    examples, copies = tmp_path / "examples.parquet", tmp_path / "duplicates.parquet"
    texts = ["one", "one two", "one two three"]
    write_examples(examples, ids, ["forget", "retain", "retain"], text=texts, label_topic=topics)
    duplicates = {"id": ["c0", "c1", "c2"], "kept_id": ["t1", "t1", None]}
    duplicates |= {"reason": ["exact"] * 3, "text_sha256": [""] * 3}
    write_table(copies, schemas.DUPLICATES, duplicates)
    known = read_texts(examples, ids[::-1], copies)
    assert known.words.tolist() == [3, 2, 1] and known.copies.tolist() == [0, 2, 0]
    assert known.labels["label_topic"].tolist() == [*"aba"]


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


def test_columns_that_know_nothing_are_named_in_few_worlds() -> None:
    worlds = (columns_of_world(seed, 60 + 3 * seed) for seed in range(100))
    assert sum(bool(leaking_columns(*world, times=2.0)) for world in worlds) <= 5


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
        reason = leak_reason([*rows.values()])
        assert (reason is None) == (true > 0)
