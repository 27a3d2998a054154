"""Scores made again with other seeds, and the table of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi.registry import plugin, plugins
from mamushi.selection.pool import Pool
from mamushi.selection.refits import make_refits, read_refits, refit_seed, refits_table
from mamushi.selection.scores import rank_forget
from mamushi.selection.selectors.mamushi import score
from tests.support.worded import worded

QUICK = {"folds": 2, "epochs": 2, "hidden": [4], "seeds_averaged": 2}


@pytest.fixture(scope="module")
def pool() -> Pool:
    return replace(worded(241), truth=np.random.default_rng(0).normal(size=241))


def settings(kind: str, **changes: object) -> dict[str, object]:
    known = plugin("selector", kind).defaults
    return {**known, **{key: value for key, value in changes.items() if key in known}}


def test_whole_refits_are_complete_runs_of_other_seeds(pool: Pool) -> None:
    given = settings("mamushi", **QUICK)
    refits = make_refits(pool, "mamushi", given, 7, whole=2, halves=1)
    assert [(part, number) for part, number, _ in refits] == [
        ("whole", 0), ("whole", 1), ("half_a", 0), ("half_b", 0),
    ]  # fmt: skip
    first, second, a, b = (scored for *_, scored in refits)
    assert np.array_equal(first.scores, score(pool, given, refit_seed(7, 0)).scores)
    assert first.fold is not None and second.fold is not None
    assert not np.array_equal(first.fold, second.fold)
    for half in (a, b):
        assert half.fold is not None and np.array_equal(half.fold, first.fold)
        assert not np.array_equal(half.scores, first.scores)
    assert not np.array_equal(a.scores, b.scores)


REFITTED = [
    kind for kind, found in plugins("selector").items() if found.unit == "texts" and found.refits
]


@pytest.mark.parametrize("kind", REFITTED)
def test_every_selector_can_be_refitted(pool: Pool, kind: str, tmp_path: Path) -> None:
    bases = []
    if "of" in plugin("selector", kind).settings:
        bases = make_refits(pool, "mamushi_lr", settings("mamushi_lr", **QUICK), 0, 2, 1)
    given = settings(kind, **QUICK)
    refits = make_refits(pool, kind, given, 0, 2, 1, bases)
    table = refits_table(pool, refits)
    write_table(tmp_path / "refits.parquet", schemas.REFITS, table)
    again = read_refits(tmp_path / "refits.parquet")
    crossfitted = "folds" in given or bool(bases)
    assert len(refits) == (4 if crossfitted else 2)
    for (part, number, scored), (read_part, read_number, read) in zip(refits, again, strict=True):
        lacking = bool(np.isnan(scored.scores[~pool.forget]).any())
        assert lacking is not plugin("selector", kind).retain_scores
        assert (part, number) == (read_part, read_number)
        assert len(rank_forget(pool, scored)) == pool.forget.sum()
        np.testing.assert_array_equal(read.scores, scored.scores)
        assert (read.fold is None) == (scored.fold is None)
        if scored.fold is not None:
            assert read.fold is not None and np.array_equal(read.fold, scored.fold)
    same = np.array_equal(refits[0][2].scores, refits[1][2].scores, equal_nan=True)
    by_chance = crossfitted or kind in ("random", "kcenter")
    assert same is not by_chance
