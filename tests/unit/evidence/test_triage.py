"""Texts on the wrong side: planted ones are found, and none is named where nothing can be said."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.cli import main
from mamushi.evidence.triage import PLACES, refusal, triage
from mamushi.selection.pool import Scored
from tests.support.score_files import domains, write_examples, write_refits, write_scores

CELL = {"dataset": "d", "model": "m", "seed": 0, "selector": "mamushi"}


def world(
    n: int = 1000, apart: float = 3.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forget = np.arange(n) < n // 4
    score = rng.normal(size=n) + apart * (forget - 0.5)
    ids = np.array([f"t{i:04d}" for i in range(n)], dtype=object)
    return ids, score, forget, rng.integers(0, 5, n)


def test_mislabelled_texts_come_first() -> None:
    ids, score, forget, _ = world()
    swapped = {"forget": ids[:5], "retain": ids[-7:]}
    score[:5], score[-7:] = -4 - np.arange(5), 4 + np.arange(7)
    rows, counts = triage(ids, score, forget, None)
    for domain, planted in swapped.items():
        found = [row for row in rows if row["domain"] == domain]
        assert counts[domain] == len(found) >= len(planted)
        assert [row["place"] for row in found] == list(range(1, len(found) + 1))
        # The worst by their own domain where the other one is beyond all of them.
        assert [row["id"] for row in found[: len(planted)]] == [*planted[::-1]]
        assert all(row["other_beyond"] > 0.5 for row in found)
    assert rows[0]["own_beyond"] == pytest.approx(1 / 250)
    assert rows[0]["why"] == "100.0% of the retain texts look more like forget"
    exact = {
        i for i in ids if (
            forget[ids == i] & (score[ids == i] < np.median(score[~forget]))
            | ~forget[ids == i] & (score[ids == i] > np.median(score[forget]))
        )[0]
    }  # fmt: skip
    assert {row["id"] for row in rows} == exact


def test_a_level_that_is_a_folds_own_names_no_text() -> None:
    ids, score, forget, fold = world(apart=8.0)
    shifted = score + 20.0 * fold
    assert triage(ids, shifted, forget, None)[1] != {"forget": 0, "retain": 0}
    assert triage(ids, shifted, forget, fold) == ([], {"forget": 0, "retain": 0})


def test_the_worst_of_many_are_shown_and_all_counted() -> None:
    ids, score, forget, fold = world(n=6000, apart=0.8)
    rows, counts = triage(ids, score, forget, fold)
    assert min(counts.values()) > PLACES and len(rows) == 2 * PLACES
    worst = [row["other_beyond"] for row in rows[:PLACES]]
    assert worst == sorted(worst, reverse=True)


def test_what_other_seeds_say_too_comes_first() -> None:
    ids, score, forget, _ = world()
    score[:2] = [-9.0, -4.0]
    other = score.copy()
    other[0] = 9.0
    rows, _ = triage(ids, score, forget, None, [Scored(other), Scored(other)])
    named = {row["id"]: row for row in rows}
    assert named[ids[0]]["stable"] == pytest.approx(1 / 3)
    assert named[ids[1]]["stable"] == 1
    assert named[ids[1]]["place"] == 1 < named[ids[0]]["place"]


def test_nothing_is_named_where_the_domains_cannot_be_told_apart() -> None:
    _, score, forget, _ = world(apart=3.0)
    assert refusal(score, forget) is None
    said = refusal(world(apart=0.0)[1], forget)
    assert said is not None and said.startswith("the domains cannot be told apart: AUC 0.")
    assert refusal(-score, forget) is not None
    assert refusal(np.where(forget, score, np.nan), forget) is not None
    assert refusal(score[245:], forget[245:]) == "fewer than 10 texts in a domain"


@pytest.mark.parametrize("apart", [0.0, 1.5])
def test_the_stage_shows_masked_texts_or_says_why_not(tmp_path: Path, apart: float) -> None:
    ids, score, forget, fold = world(apart=apart)
    about = ids.tolist(), domains(forget)
    write_scores(tmp_path / "scores.parquet", *about, score, fold=fold)
    texts = [f"Well, damn  {i}" for i in ids]
    write_examples(tmp_path / "examples.parquet", *about, text=texts)
    write_refits(tmp_path / "refits.parquet", *about, [("whole", 0, score)], fold)
    read = [f"--{name}={tmp_path / name}.parquet" for name in ("examples", "scores", "refits")]
    written = [f"--out={tmp_path / 'out.parquet'}", f"--csv={tmp_path / 'out.csv'}"]
    assert main(["triage", *read, *written, f"--settings={json.dumps(CELL)}"]) == 0
    table = read_table(tmp_path / "out.parquet", schemas.TRIAGE)
    details = read_metadata(tmp_path / "out.parquet")["details"]
    with (tmp_path / "out.csv").open(encoding="utf-8") as handle:
        listed = list(csv.DictReader(handle))
    assert [row["id"] for row in listed] == table["id"].to_pylist()
    if apart:
        assert details["why"] is None
        assert sum(details["looks_like_the_other"].values()) == len(table) > 0
        assert listed[0]["text"] == f"Well, d*** {listed[0]['id']}"
        assert listed[0]["selector"] == "mamushi"
        assert set(table["stable"].to_pylist()) == {1.0}
    else:
        assert len(table) == 0
        assert "cannot be told apart" in details["why"]
