"""The tables of the evidence: joined from the files of the runs, with advice."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.io import paths, schemas
from mamushi.io.files import sha256
from mamushi.io.tables import read_metadata, read_table, write_table

FILES = {
    "frontier": paths.FRONTIER,
    "calibration": paths.CALIBRATION,
    "diagnostics": paths.DIAGNOSTICS,
    "agreement": paths.AGREEMENTS,
    "confounds": paths.CONFOUNDS,
    "geometry": paths.GEOMETRY,
    "predicted": paths.PREDICTED,
    "runtime": paths.RUNTIME,
}
RUNS = [{"dataset": "small", "model": "tiny", "seed": seed} for seed in (0, 1)]
SELECTORS = {"mamushi": 0.5, "random": 1.0, "reverse": 2.0}
TABLES = (
    *("frontier", "calibration", "diagnostics", "confounds", "geometry", "predicted", "runtime"),
    *("runtime_summary", "agreement", "advice", "paper"),
)
BETAS = (0.0, 0.5, 1.0)


def kind(name: str) -> schemas.Table:
    table: schemas.Table = getattr(schemas, name.upper())
    return table


def filled(name: str, run: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A row of the table ``name`` with made-up values for all that is not given."""
    default = {pa.string(): "threshold", pa.int64(): 3, pa.float64(): 0.5, pa.bool_(): True}
    row = {field.name: default[field.type] for field in kind(name).schema}
    return row | run | values


def write(root: Path, name: str, run: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    metadata = None
    if name == "frontier":
        metadata = {
            "relative": {
                selector: {key: [0, 0.5**power, 1] for key in ("gain", "gain_low", "gain_high")}
                for selector, power in SELECTORS.items()
            },
            "verdict": {"withheld": None},
        }
    table = pa.Table.from_pylist(rows, schema=kind(name).schema)
    write_table(paths.under(root, FILES[name], **run), kind(name), table, metadata=metadata)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for run in RUNS:
        curves = [
            filled("frontier", run, selector=selector, beta=b, removal=1 + b**power,
                   preservation=0.25 * (1 - b))
            for selector, power in SELECTORS.items() for b in BETAS
        ]  # fmt: skip
        write(tmp_path, "frontier", run, curves)
        checked = [filled("calibration", run, selector="mamushi", check=c) for c in ("a", "b")]
        write(tmp_path, "calibration", run, checked)
        scored = [filled("diagnostics", run, selector=name) for name in SELECTORS]
        write(tmp_path, "diagnostics", run, scored)
        write(tmp_path, "agreement", run, [filled("agreement", run, first="a", second="b")])
        write(tmp_path, "confounds", run, [filled("confounds", run, selector=n) for n in SELECTORS])
        foreseen = [
            filled("predicted", run, selector=selector, beta=b, recovered=b**power)
            for selector, power in SELECTORS.items() for b in BETAS
        ]  # fmt: skip
        write(tmp_path, "predicted", run, foreseen)
        write(tmp_path, "geometry", run, [filled("geometry", run, k=k) for k in range(1, 61)])
        times = {"wall_seconds": 2.0 + run["seed"], "cpu_seconds": None}
        write(tmp_path, "runtime", run, [filled("runtime", run, selector="mamushi", **times)])
    return tmp_path


def make(root: Path, **changes: Any) -> int:
    values = {
        "cells": RUNS,
        "predicted_cells": RUNS,
        "selector": "mamushi",
        "targets": [{"target": "removal", "value": 0.5}, {"target": "preservation", "value": 0.1}],
        **changes,
    }
    out = str(root / "tables")
    return main(
        ["evidence", "--root", str(root), "--out-folder", out, "--settings", json.dumps(values)]
    )


def test_all_tables(root: Path) -> None:
    assert make(root) == 0
    rows = {}
    for name in TABLES:
        rows[name] = read_table(root / "tables" / f"{name}.parquet", kind(name)).to_pylist()
        with (root / "tables" / f"{name}.csv").open() as handle:
            listed = list(csv.reader(handle))
        assert listed[0] == kind(name).schema.names
        assert len(listed) == 1 + len(rows[name])
    assert [row["seed"] for row in rows["frontier"]] == [0] * 9 + [1] * 9
    assert [row["seed"] for row in rows["geometry"]] == [0] * 60 + [1] * 60
    assert len(rows["diagnostics"]) == len(rows["confounds"]) == 6
    assert [row["check"] for row in rows["calibration"]] == ["a", "b"] * 2
    assert [row["seed"] for row in rows["runtime"]] == [0, 1]
    (times,) = rows["runtime_summary"]
    assert (times["wall_seconds_mean"], times["wall_seconds_sd"]) == (2.5, pytest.approx(0.5**0.5))
    assert times["cpu_seconds_mean"] is times["paper_mean"] is None
    assert {row["dataset"] for row in rows["paper"]} == {"small"}

    assert len(rows["advice"]) == 6
    first = rows["advice"][2]
    assert (first["selector"], first["target"]) == ("random", "removal")
    assert first["budget"] == pytest.approx(0.5)
    assert first["retraining"] == pytest.approx(0.5)
    stored = read_metadata(root / "tables" / "advice.parquet")
    inputs = stored["inputs"]
    runs = {f"{name}/small/tiny/seed{seed}" for name in FILES for seed in (0, 1)}
    assert set(inputs) == runs
    read = paths.under(root, FILES["geometry"], **RUNS[1])
    assert inputs["geometry/small/tiny/seed1"] == sha256(read)
