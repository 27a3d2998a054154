"""Which columns of a table are asked whether they give the domain away, and as what."""

from pathlib import Path

import pandas as pd
import pytest

from mamushi_curate.tables.columns import other_columns


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_numbers_dates_and_categories_are_asked_and_texts_are_not(
    tmp_path: Path, kind: str
) -> None:
    path, rows = tmp_path / f"t.{kind}", range(60)
    numbers = {"score": [row / 7 for row in rows], "gap": [None if row % 3 else 2 for row in rows]}
    days = [f"2024-01-{row % 28 + 1:02}" for row in rows]
    texts = [f"a text of number {row}" for row in rows]
    frame = pd.DataFrame({"body": texts, **numbers, "day": days, "source": ["a", "b"] * 30})
    writers = {"csv": frame.to_csv, "parquet": frame.to_parquet, "jsonl": frame.to_json}
    options = {"orient": "records", "lines": True} if kind == "jsonl" else {"index": False}
    writers[kind](path, **options)
    assert other_columns(path, ["body"]) == ["score", "gap", "day", "source"]
