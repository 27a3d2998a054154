"""The stage `remove`: a list that holds nothing says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import sha256
from mamushi.io.tables import read_table, write_table
from tests.support.score_files import ROWS, write_examples


@pytest.mark.parametrize(("beta", "removed"), [(0.3, 0), (0.34, 1)])
def test_a_budget_of_less_than_one_text(
    beta: float, removed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, duplicates, out = (tmp_path / f"{name}.parquet" for name in ("scores", "dup", "out"))
    columns: dict[str, Any] = {
        "id": ["a", "b", "c", "d"],
        "domain": ["forget"] * 3 + ["retain"],
        "score": [3.0, 2.0, 1.0, 0.0],
        "rank": [1, 2, 3, None],
        "fold": [None] * 4,
    }
    examples = tmp_path / "examples.parquet"
    write_examples(examples, columns["id"], columns["domain"])
    digest = sha256(examples)
    origin = {"provenance": {"inputs": {"examples": digest}}}
    write_table(scores, schemas.SCORES, columns, metadata=origin)
    none: dict[str, list[str]] = {name: [] for name in schemas.DUPLICATES.schema.names}
    origin_of_rows = {"examples": digest, "rows": ROWS}
    write_table(duplicates, schemas.DUPLICATES, none, metadata=origin_of_rows)
    words = [f"--scores={scores}", f"--duplicates={duplicates}", f"--out={out}"]
    words += [f"--examples={examples}"]
    settings = json.dumps({"beta": beta})
    assert main(["remove", *words, f"--settings={settings}"]) == 0
    assert len(read_table(out, schemas.REMOVALS)) == removed
    line = f"{out}: a budget of 0.3 is less than one of 3 forget texts: the list is empty"
    # And what it took.
    assert capsys.readouterr().err.splitlines()[:-1] == ([] if removed else [line])
