"""What a dry run says of a table by its first rows: never what the job would not say as well."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.configuration.complete import ConfigError, complete
from mamushi.data import head
from mamushi.data.loaders import table
from mamushi.errors import UserError
from mamushi.registry import plugin

LATER = head.ROWS
"""A row that is not looked at, counted from 0."""


def config(path: Path | None, **changes: Any) -> dict[str, Any]:
    """A completed configuration with one table."""
    own = {"kind": "table", "forget": {"where": "score > 0.5"}, "sections": {"inference": 1}}
    return complete(
        {
            "grid": {"datasets": ["own"], "models": ["lab"]},
            "datasets": {"own": own | {"path": path and str(path)} | changes},
            "models": {"lab": {"source": None, "contaminated": True}},
        }
    )


def told(given: dict[str, Any]) -> str | None:
    """What the look says; the job, which reads everything, says it too."""
    try:
        head.check(given)
    except ConfigError as error:
        (line,) = error.lines
        definition = given["datasets"]["own"]
        if definition["path"] is not None:
            with pytest.raises(UserError):
                table.load({key: definition[key] for key in SETTINGS}, Path("unused"))
        return line
    return None


SETTINGS = plugin("dataset", "table").settings


def written(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"data.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines), encoding="utf-8")
        if kind == "csv.zip":
            content = path.read_bytes()
            with zipfile.ZipFile(path, "w") as zipped:
                zipped.writestr("data.csv", content)
    return path


def rows_of(count: int = 2 * head.ROWS, **cells: dict[int, Any]) -> list[dict[str, Any]]:
    """Good rows but for these cells, by column and row."""
    rows: list[dict[str, Any]] = [
        {"text": f"text {i}", "score": 0.25, "tag": "a"} for i in range(count)
    ]
    for name, found in cells.items():
        for row, value in found.items():
            rows[row][name] = value
    return rows


KINDS = ["csv", "csv.zip", "jsonl", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_table_is_left_alone(kind: str, tmp_path: Path) -> None:
    assert told(config(written(tmp_path, kind, rows_of()), labels=["tag"])) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "changes",
    [
        {"text": "body"},
        {"labels": ["body"]},
        {"forget": {"where": "score > 0.5 or body == 1"}},
        {"forget": {"column": "body", "values": [1]}},
    ],
)
def test_a_missing_column(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    # So few rows that the look has seen all of them: a key of JSON may be in a later row alone.
    path = written(tmp_path, kind, rows_of(5))
    line = told(config(path, **changes))
    assert line is not None
    assert line.startswith(f"datasets.own: {path}: no column 'body'; ")


def test_a_bad_expression_needs_no_file() -> None:
    line = told(config(None, forget={"where": "score >"}))
    assert line is not None
    assert line.startswith("datasets.own: expression 'score >': ")


@pytest.mark.parametrize("kind", ["csv", "csv.zip", "jsonl"])
@pytest.mark.parametrize(
    ("cells", "changes", "message"),
    [
        ({"score": {1: ""}}, {}, "row 2.*column 'score' is empty"),
        ({}, {"forget": {"where": "tag > 0.5"}}, "row 1.*one is text"),
        ({"tag": {1: ""}}, {"forget": {"column": "tag", "values": ["a"]}}, "row 2.*'tag' is ''"),
        ({"tag": {1: ""}}, {"id": "tag"}, "row 2.*'tag' is ''"),
        ({}, {"section": "tag"}, "row 1.*section 'a' in column 'tag'"),
    ],
)
def test_a_wrong_cell_among_the_first(
    kind: str, cells: dict[str, Any], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    line = told(config(written(tmp_path, kind, rows_of(**cells)), **changes))
    assert line is not None
    assert re.search(message, line)


def test_a_value_that_no_row_has(tmp_path: Path) -> None:
    changes = {"forget": {"column": "tag", "values": ["b"]}}
    line = told(config(written(tmp_path, "csv", rows_of(5)), **changes))
    assert line is not None
    assert "no row has the value 'b'; its values are a" in line
    later = written(tmp_path, "csv", rows_of(tag={LATER: "b"}))
    assert told(config(later, **changes)) is None


@pytest.mark.parametrize(
    ("cells", "where"),
    [
        # Types that only later rows tell: what is a number so far may be text.
        ({"score": {LATER: "high"}}, "score == 'high'"),
        ({"score": {LATER: "high"}}, "tag == 'a' and score in ['high', '0.25']"),
        # Cells that are wrong, but where nobody looks yet.
        ({"score": {LATER: ""}}, "score > 0.5"),
    ],
)
def test_what_later_rows_decide_is_left_to_the_job(
    cells: dict[str, Any], where: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "csv", rows_of(**cells))
    assert told(config(path, forget={"where": where})) is None


def test_types_of_more_columns_than_can_be_tried_are_left_to_the_job(tmp_path: Path) -> None:
    rows = rows_of()
    for row in rows:
        row |= {f"c{number}": 1 for number in range(40)}
    rows[LATER]["c0"] = "x"
    path = written(tmp_path, "csv", rows)
    where = f"c0 == 'x' and {' + '.join(f'c{number}' for number in range(1, 40))} > 0"
    assert told(config(path, forget={"where": where})) is None


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"no table at all, but long enough"):
        (tmp_path / "data.parquet").write_bytes(content)
        line = told(config(tmp_path / "data.parquet"))
        assert line is not None
        assert "data.parquet: damaged or not a Parquet file" in line


def test_the_look_imports_nothing_heavy() -> None:
    code = "import sys, mamushi.data.head\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "pyarrow", "torch"} & set(done.stdout.split())
