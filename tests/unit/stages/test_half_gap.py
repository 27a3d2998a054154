"""The stages ``refine`` and ``half-gap``: what they write."""

from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_metadata, read_table
from tests.support.stage_files import command
from tests.support.unlearning_files import AXES, sweeps_of, write_runs

SWEEP: dict[str, Any] = {
    "dataset": "alpha",
    "model": "small",
    "unlearner": "neggrad_plus",
    "selector": "mamushi",
    "start": "beta0",
    "seeds": AXES["seeds"],
    "budgets": AXES["budgets"],
    "fine": 0.05,
    "target": 0.5,
}
HALF_GAP: dict[str, Any] = {
    "grid": AXES,
    "starts": {"small": "beta0"},
    "sweeps": sweeps_of(AXES),
    "target": 0.5,
    "retain_cap": 5.6,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_runs(folder, AXES)
    return folder


def test_a_sweep_is_refined_around_its_crossing(root: Path) -> None:
    out = root / "sweep.json"
    assert main(command("refine", SWEEP, root=root, out=out)) == 0
    sweep = read_json(out)
    # Shares of 0.385 at 0.25 and 0.76 at 0.5, the mean of seeds 0, 1, 2.
    assert sweep["added"] == [0.3, 0.35, 0.4, 0.45]
    assert sweep["budgets"] == [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    assert sweep["provenance"]["settings"]["target"] == 0.5


def test_the_stage_writes_both_tables_and_the_same_bytes_again(root: Path) -> None:
    folder = root / "tables"
    words = command("half-gap", HALF_GAP, root=root, out_folder=folder)
    assert main(words) == 0
    for kind, count in ((schemas.UNLEARNING, 3 * 2 * 2 * 4), (schemas.HALF_GAP, 4)):
        path = folder / f"{kind.name}.parquet"
        assert read_table(path, kind).num_rows == count
        assert read_metadata(path)["settings"]["retain_cap"] == 5.6
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(words) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
