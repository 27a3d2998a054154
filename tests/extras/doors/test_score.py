"""`mamushi score`: texts of any table by a saved selector, and bad input in one line."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from mamushi.cli import main
from mamushi.io.tables import read_metadata
from mamushi.selection.metrics import auc
from mamushi_extras.doors.commands import score
from mamushi_extras.doors.scorers import read_scorer
from tests.extras.doors.test_scorers import drawn, saved
from tests.support.lab import write_lab
from tests.support.scored_cells import rank_cell

TEXTS, THEIRS = drawn(60, 5)


def write_corpus(folder: Path, names: list[str] | None = None) -> Path:
    """Three files of twenty texts; the last has one text without words."""
    folder.mkdir()
    for number in range(3):
        rows = range(20 * number, 20 * number + 20)
        lines = [{"name": names[i] if names else f"n{i}", "body": TEXTS[i]} for i in rows]
        lines += [{"name": "empty", "body": "?!"}] if number == 2 else []
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"part-{number}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("scorer") / "scorer.safetensors")


def scored(scorer: Path, data: Path, out: Path, *more: str) -> int:
    words = ["--with", str(scorer), "--out", str(out), "--text", "body", *more]
    return main(["score", str(data), *words])


def test_scores_are_the_same_in_blocks_of_any_size_and_in_all_formats(
    scorer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    expected = [*read_scorer(scorer).scores(TEXTS).tolist(), None]
    assert auc(np.array(expected[:60]), THEIRS) > 0.95
    outs = []
    for number, (block, ending) in enumerate(((7, "csv"), (8192, "parquet"))):
        monkeypatch.setattr(score, "SCORED_AT_ONCE", block)
        outs.append(tmp_path / f"scores-{number}.{ending}")
        assert scored(scorer, corpus, outs[-1], "--id", "name") == 0
    with outs[0].open(encoding="utf-8") as file:
        cells = [row["score"] for row in csv.DictReader(file)]
    table = pq.read_table(outs[1])
    assert (
        table["score"].to_pylist() == [float(cell) if cell else None for cell in cells] == expected
    )
    assert table["id"].to_pylist() == [f"n{i}" for i in range(60)] + ["empty"]
    assert read_metadata(outs[1])["provenance"]["inputs"].keys() == {"scorer"}


def test_a_list_of_words_alone_is_exported_as_what_ranked_it(tmp_path: Path) -> None:
    """Texts of the same kinds are told apart, those that were ranked about as they were."""
    rows = write_lab(tmp_path)
    listed = rank_cell()
    command = ["export", str(listed), "--to", "scorer", "--out", "scorer.safetensors"]
    assert main(command) == 0
    assert main(command) == 2  # It is there.
    scorer = Path("scorer.safetensors")
    assert (read_scorer(scorer).text, read_scorer(scorer).part) == ("body", "whole")
    assert main(["score", "comments.csv", "--with", str(scorer), "--out", "all.csv"]) == 0
    with open("all.csv", encoding="utf-8") as file:
        scores = np.array([float(row["score"]) for row in csv.DictReader(file)])
    assert auc(scores, np.array([source == "theirs" for _, _, source in rows])) > 0.99
    assert scored(scorer, write_corpus(tmp_path / "new"), Path("new.parquet")) == 0
    new = pq.read_table("new.parquet")["score"].to_numpy()
    assert auc(new[:60], THEIRS) > 0.95


def test_vectors_are_those_of_the_model_that_ranked(tmp_path: Path) -> None:
    """As those of the run are, which were read in other batches; another model is refused."""
    write_lab(tmp_path)
    listed = rank_cell({"source": "ours", "contaminated": True})
    assert main(["export", str(listed), "--to", "scorer", "--out", "s.safetensors"]) == 0
    score = ["score", "comments.csv", "--with", "s.safetensors", "--id", "id"]
    assert main([*score, "--out", "none.csv"]) == 2
    assert main([*score, "--model", "ours", "--out", "all.parquet"]) == 0
    run = next(Path().glob("results/runs/*/*/*/embeddings.parquet"))
    embedded = {row["id"]: row["embedding"] for row in pq.read_table(run).to_pylist()}
    texts = {row["id"]: row["body"] for row in pd.read_csv("comments.csv").to_dict("records")}
    scorer = read_scorer(Path("s.safetensors"), "ours")
    names = [*embedded]
    of_run = replace(scorer, embed=lambda texts: np.array([*embedded.values()], np.float64))
    expected = of_run.scores([texts[name] for name in names])
    scores = {row["id"]: row["score"] for row in pq.read_table("all.parquet").to_pylist()}
    # Of batches of other texts, in bf16.
    np.testing.assert_allclose([scores[name] for name in names], expected, atol=0.05)
    card = Path("ours/config.json")
    card.write_text(card.read_text().replace("{", "{ ", 1))
    assert main([*score, "--model", "ours", "--out", "other.csv"]) == 2
