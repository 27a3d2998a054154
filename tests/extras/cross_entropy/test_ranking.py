"""A table of one's own is ranked by what a small model says, and by it alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mamushi
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.lm import tiny
from tests.support.lab import SHAPE

WORDS = (["river", "stone", "water", "meadow"], ["engine", "wheel", "brake", "meadow"])
N, CELL = 80, {"dataset": "texts", "model": "vectors", "seed": 0, "selector": "cross_entropy"}


def test_the_list_of_a_judge_has_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, theirs = np.random.default_rng(0), np.arange(N) % 3 == 0
    texts = [f"{' '.join(rng.choice(WORDS[of], 12))} {n}" for n, of in enumerate(theirs * 1)]
    frame = pd.DataFrame({"id": [f"t{n}" for n in range(N)], "body": texts, "theirs": theirs * 1})
    vectors = rng.normal(size=(N, 6)).astype(np.float32)
    for made in tiny.build(SHAPE, texts, seed=0):
        made.save_pretrained(tmp_path / "small")
    frame.to_csv("texts.csv", index=False)
    pq.write_table(pa.table({"id": frame["id"], "vector": [*vectors]}), "vectors.parquet")
    words = ["init", "texts.csv", "--text", "body", "--id", "id", "--forget", "theirs == 1"]
    words += ["--embeddings", "vectors.parquet", "--budgets", "0.5", "--selectors"]
    # Vectors say nothing of tokens, and no other selector asks a judge.
    assert main([*words, "cross_entropy"]) == 2
    assert "has vectors and no weights" in capsys.readouterr().err
    options = {"text": "body", "id": "id", "forget": "theirs", "embeddings": vectors}
    with pytest.raises(UserError, match="add --selectors cross_entropy"):
        mamushi.rank(frame, judge="small", selector="mamushi_lr", **options)
    assert main([*words, "cross_entropy", "--judge", "small"]) == 0
    with Path("mine.yaml").open("a") as file:
        file.write("removal: {ratio: cross_entropy}\n")
    assert main(["rank"]) == 0
    assert "trains models without a GPU" in capsys.readouterr().err
    scores = read_table(paths.SCORES.format(**CELL), schemas.SCORES)
    assert {*scores["fold"].to_pylist()} == {0, 1} and scores["score"].null_count == 0
    manifest = read_json(paths.MANIFEST.format(**CELL, beta="0.50"))
    assert manifest["separation"]["auc"] > 0.9 and manifest["judgement"]["act"] == "check"
    # It is calibrated as a ratio, and no other seed says how much of that its models' noise hides.
    calibrated = read_table(paths.CALIBRATED.format(**CELL), schemas.CALIBRATED)
    order = np.argsort(calibrated["log_ratio"].to_numpy())
    assert calibrated["domain"].to_numpy()[order[-len(order) // 4 :]].tolist().count("forget") > 15
    assert "nothing was refitted" in manifest["expected"]["withheld"]
