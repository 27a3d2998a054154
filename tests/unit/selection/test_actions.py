"""Spans that are left out of a training's loss in the place of whole texts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table, write_table
from mamushi.cli import main
from mamushi.selection.actions import highest_spans


def test_the_highest_tokens_are_spans_in_their_texts() -> None:
    ratios = [np.array(each, np.float32) for each in ([5, 4, -1, 3], [], [0], [2, 9])]
    assert highest_spans(ratios, 0) == {}
    # A text's first token is not predicted: its ratios begin with the second, at 1.
    assert highest_spans(ratios, 4) == {0: [(1, 3), (4, 5)], 3: [(2, 3)]}
    assert highest_spans(ratios, 7) == {0: [(1, 5)], 2: [(1, 2)], 3: [(1, 3)]}


@pytest.mark.parametrize(("beta", "tokens"), [(0.1, 0), (0.3, 2), (0.9, 8)])
def test_the_spans_of_a_budget(beta: float, tokens: int, tmp_path: Path) -> None:
    ratio, out = tmp_path / "ratio.parquet", tmp_path / "spans.parquet"
    columns = {"id": ["a", "b"], "ratio": pa.array([[1.0, 3.0, 2.0], [0.0] * 6])}
    columns["ratio"] = columns["ratio"].cast(pa.list_(pa.float32()))
    write_table(ratio, schemas.TOKEN_RATIO, columns)
    settings = json.dumps({"beta": beta, "code": "digest"})
    assert main(["spans", f"--ratio={ratio}", f"--out={out}", f"--settings={settings}"]) == 0
    found = read_table(out, schemas.SPANS).to_pylist()
    assert sum(row["stop"] - row["start"] for row in found) == tokens
    if tokens == 2:
        assert found == [{"id": "a", "start": 2, "stop": 4}]
