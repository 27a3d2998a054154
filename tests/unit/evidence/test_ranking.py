"""How often a text is listed, what of a list a second run lists, and the ends of a ranking."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mamushi.evidence.ranking import end_rows, excerpt, refit_ranks, stability_columns
from mamushi.io import paths
from tests.support.score_files import write_examples, write_scores


def test_frequencies_and_overlaps_by_hand() -> None:
    # The text "r" is to be kept.
    scores = pa.table({"id": [*"abrcd"], "rank": [1, 2, None, 3, 4]})
    again = [
        np.array([4.0, 1.0, 9.0, 3.0, 2.0]),  # a c d b
        np.array([1.0, 1.0, 9.0, 1.0, 1.0]),  # ties by id: a b c d
    ]
    ids, ranks = refit_ranks(scores, again)
    assert ids == ["a", "b", "c", "d"]
    assert ranks.tolist() == [[1, 2, 3, 4], [1, 4, 2, 3], [1, 2, 3, 4]]
    columns, told = stability_columns(ids, ranks, [0.1, 0.5, 0.75])
    assert told["rankings"] == 3
    assert told["spearman"] == {"mean": pytest.approx(0.7), "least": pytest.approx(0.4)}
    none = {"expected_overlap": None, "least_overlap": None, "surely": 0, "toss_up": 0}
    half = {"expected_overlap": 0.75, "least_overlap": 0.5, "surely": 1, "toss_up": 1}
    assert told["budgets"]["0.10"] == none
    assert told["budgets"]["0.50"] == half
    assert told["budgets"]["0.75"]["expected_overlap"] == pytest.approx(5 / 6)
    assert columns["frequency"].reshape(3, 4)[1] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert columns["rank"].tolist() == [1, 2, 3, 4] * 3


def test_an_excerpt_is_folded_masked_and_cut() -> None:
    assert excerpt("  Well,\n\tdamn \u2028 it ") == "Well, d*** it"
    assert excerpt("x" * 301) == "x" * 299 + "…"
    # A listed word that the cut goes through stays masked.
    assert excerpt("ab crap", 6) == "ab c*…"


def test_the_table_of_both_ends(tmp_path: Path) -> None:
    cell = {"dataset": "d", "model": "m", "seed": 0}
    ids = [f"i{p:02d}" for p in range(25)]
    texts = [f"damn\n\n{p} " + "word " * 100 for p in range(25)]
    write_examples(paths.under(tmp_path, paths.EXAMPLES, **cell), ids, ["forget"] * 25, text=texts)
    path = paths.under(tmp_path, paths.SCORES, **cell, selector="mamushi")
    write_scores(path, [*ids, "r"], [*["forget"] * 25, "retain"], [*np.linspace(5, -5, 25), None])
    rows = end_rows(tmp_path, {**cell, "selector": "mamushi"})
    assert [row["id"] for row in rows] == [*ids[:10], *ids[:-11:-1]]
    assert rows[10] | {"text": ""} == {
        **{**cell, "selector": "mamushi", "end": "bottom", "place": 1, "rank": 25},
        **{"score": -5.0, "id": "i24", "text": ""},
    }
    assert all(re.match(r"d\*\*\* \d+ word", row["text"]) for row in rows)
    assert {len(row["text"]) for row in rows} <= {299, 300}
