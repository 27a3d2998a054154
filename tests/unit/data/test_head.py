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


ALL, LINES = ("csv", "csv.zip", "jsonl", "parquet"), ("csv", "csv.zip", "jsonl")
MISSING = "data.{kind}: no column 'body'; "
CASES: list[tuple[tuple[str, ...], int, dict[str, Any], dict[str, Any], str | None]] = [
    # Formats, rows, cells by column and row, settings, what is said.
    (ALL, 200, {}, {"labels": ["tag"]}, None),
    # So few rows that the look has seen all of them: a key of JSON may be in a later row alone.
    (ALL, 5, {}, {"text": "body"}, MISSING),
    (ALL, 5, {}, {"labels": ["body"]}, MISSING),
    (ALL, 5, {}, {"forget": {"where": "score > 0.5 or body == 1"}}, MISSING),
    (ALL, 5, {}, {"forget": {"column": "body", "values": [1]}}, MISSING),
    (LINES, 200, {"score": {1: ""}}, {}, "row 2.*column 'score' is empty"),
    (LINES, 200, {}, {"forget": {"where": "tag > 0.5"}}, "row 1.*one is text"),
    (
        LINES,
        200,
        {"tag": {1: ""}},
        {"forget": {"column": "tag", "values": ["a"]}},
        "row 2.*'tag' is",
    ),
    (LINES, 200, {"tag": {1: ""}}, {"id": "tag"}, "row 2.*'tag' is ''"),
    (LINES, 200, {}, {"section": "tag"}, "row 1.*section 'a' in column 'tag'"),
    (("csv",), 5, {}, {"forget": {"column": "tag", "values": ["b"]}}, "no row has the value 'b'"),
    # What later rows decide is left to the job: values, types, and cells nobody looks at yet.
    (LINES, 200, {"tag": {LATER: "b"}}, {"forget": {"column": "tag", "values": ["b"]}}, None),
    (LINES[:2], 200, {"score": {LATER: "high"}}, {"forget": {"where": "score == 'high'"}}, None),
    (LINES, 200, {"score": {LATER: ""}}, {}, None),
]


@pytest.mark.parametrize(
    ("kind", "count", "cells", "changes", "message"),
    [(kind, *case) for kinds, *case in CASES for kind in kinds],
)
def test_what_the_first_rows_tell(
    kind: str,
    count: int,
    cells: dict[str, Any],
    changes: dict[str, Any],
    message: str | None,
    tmp_path: Path,
) -> None:
    line = told(config(written(tmp_path, kind, rows_of(count, **cells)), **changes))
    if message is None:
        assert line is None
    else:
        assert line is not None and line.startswith("datasets.own: ")
        assert re.search(message.format(kind=kind), line)


def test_a_bad_expression_needs_no_file() -> None:
    line = told(config(None, forget={"where": "score >"}))
    assert line is not None
    assert line.startswith("datasets.own: expression 'score >': ")


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
