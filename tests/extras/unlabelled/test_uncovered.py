"""Which clusters of a corpus its examples may not cover, and what `mamushi show` says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mamushi.io.tables import write_table
from mamushi_extras.unlabelled.schemas import POSTERIOR, UNCOVERED_CLUSTERS
from mamushi_extras.unlabelled.shown import corpus_lines
from mamushi_extras.unlabelled.uncovered import ASKED, SHOWN, in_between, uncovered_clusters
from tests.support.audited import write_corpus, write_uncovered


def ranking(n: int, examples: int = 0) -> pa.Table:
    """A table `posterior` of texts in the order of their scores, the first of them certain."""
    ids = [f"c{i:03}" for i in range(n)]
    domain = np.where(np.arange(n) < examples, "forget", "retain").tolist()
    columns = {
        **{"id": ids, "domain": domain, "score": -np.arange(n, dtype=float)},
        **{"rank": np.arange(1, n + 1), "fold": pa.nulls(n, pa.int16())},
        **{"log_ratio": np.zeros(n), "posterior": np.zeros(n)},
    }
    return pa.table(columns, schema=POSTERIOR.schema).take(pa.array(range(n - 1, -1, -1)))


def test_what_scores_in_between_is_neither_likely_nor_certain_nor_low() -> None:
    between = in_between(ranking(100, examples=2), 10)
    assert between["id"].to_pylist() == [f"c{i:03}" for i in range(10, 55)]
    assert len(in_between(ranking(100, examples=12), 10)) == 44


def test_a_kind_that_lies_apart_is_a_cluster_and_the_highest_come_first() -> None:
    rng = np.random.default_rng(0)
    n, apart = 400, np.arange(400) % 40 == 0
    vectors = rng.normal(size=(n, 8)) + 30.0 * apart[:, None]
    ids = np.array([f"c{i:03}" for i in range(n)], dtype=object)
    mixed = rng.permutation(n)
    between = in_between(ranking(800), 0)
    table = uncovered_clusters(between, ids[mixed], vectors[mixed].astype(np.float16))
    assert table.schema == UNCOVERED_CLUSTERS.schema and len(table) == SHOWN
    rows = table.to_pylist()
    assert [row["cluster"] for row in rows] == [*range(1, SHOWN + 1)]
    assert rows == sorted(rows, key=lambda row: -row["score"])
    alone = [row for row in rows if {int(name[1:]) % 40 for name in row["ids"]} == {0}]
    assert [row["texts"] for row in alone] == [10] and len(alone[0]["ids"]) == ASKED
    assert alone[0]["score"] == pytest.approx(-np.arange(0, 400, 40).mean())
    assert uncovered_clusters(between.slice(0, 2), ids, vectors.astype(np.float16)).num_rows == 0


def test_show_has_a_text_of_each_and_says_how_to_answer(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "results")
    manifest = {
        **{"path": path, "share": {"low": None, "high": None, "estimate": 0.1, "reason": None}},
        **{"blocklist": None, "examples": 20, "n_forget": 100, "certain": 0, "likely": 20},
    }
    assert "uncovered" not in corpus_lines(manifest)
    ranked = write_uncovered(path)
    lines = corpus_lines(manifest)["uncovered"].splitlines()
    assert lines[1].strip() == f"mamushi audit {path} --uncovered"
    assert " ".join(lines[2].split()) == "12 texts, mean score 1.50: words of c30"
    # Of an earlier ranking nothing is said.
    write_table(ranked, POSTERIOR, ranking(100))
    assert "uncovered" not in corpus_lines(manifest)
