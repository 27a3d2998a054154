"""The linear datamodeling score of a score that foresees a retraining, and of one that does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.influence.peers import changes, list_of, mask_of, tell
from studies.lib import report


def test_a_score_that_adds_up_to_the_change_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    texts, lists = 60, 30
    teaches = rng.random(texts)
    forget, tokens = np.arange(40) < 25, rng.integers(3, 20, 40)
    start = tokens * 4.0

    def write(name: str, change: float) -> None:
        nll = start + np.where(forget, change, -change) * tokens
        deep = np.where(forget, start + change / 2 * tokens, np.nan)
        columns = {"tokens": tokens, "nll": nll, "deep": deep, "forget": forget}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    write("beta0", 0.0)
    sums = np.array([teaches[list_of(texts, number)].sum() for number in range(lists)])
    for number in range(lists):
        write(f"list{number}", sums[number] / 100)
    measured = changes(tmp_path, [f"list{number}" for number in range(lists)])
    assert measured.forget == pytest.approx(sums / 100)
    assert measured.deep == pytest.approx(sums / 200)
    assert measured.apart == pytest.approx(sums / 50)
    printed = report.Report("peers")
    tell(printed, "right", sums, measured)
    tell(printed, "chance", rng.random(lists), measured)
    values = dict(line.split(" ", 1) for line in printed.lines if not line.startswith("#"))
    assert values["right_forget"] == "1.00 1.00 1.00"
    low, high = map(float, values["chance_deep"].split()[1:])
    assert low < 0 < high
    assert "chance_apart" in capsys.readouterr().out


def test_lists_and_masks_have_their_share_and_differ() -> None:
    first, second = list_of(30, 0), list_of(30, 1)
    assert len(set(first.tolist())) == len(first) == 10
    assert set(first.tolist()) != set(second.tolist())
    parts = mask_of(np.array([4, 9, 7]), 0)
    assert [len(part) for part in parts] == [4, 9, 7]
    assert sum(part.sum() for part in parts) == 2
