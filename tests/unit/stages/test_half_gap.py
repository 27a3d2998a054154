"""What is published of half-gap budgets, and the finer ones that the next run measures."""

from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_metadata, read_table
from tests.support.stage_files import command
from tests.support.unlearning_files import AXES, sweeps_of, write_runs

HALF_GAP: dict[str, Any] = {
    "grid": AXES,
    "starts": {"small": "beta0"},
    "sweeps": sweeps_of(AXES),
    "target": 0.5,
    "retain_cap": 5.6,
    "fine": 0.05,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_runs(folder, AXES)
    return folder


def test_all_tables_are_written_to_the_same_bytes_again(root: Path) -> None:
    folder = root / "tables"
    how = {"name": "half_gap", "settings": HALF_GAP}
    words = command("publish", how, root=root, out_folder=folder)
    assert main(words) == 0
    counts = {schemas.UNLEARNING: 3 * 2 * 2 * 4, schemas.HALF_GAP: 4, schemas.SAVINGS: 2}
    for kind, count in counts.items():
        path = folder / f"{kind.name}.parquet"
        assert read_table(path, kind).num_rows == count
        assert read_metadata(path)["settings"]["settings"]["retain_cap"] == 5.6
    sweeps = read_json(paths.under(root, paths.SWEEPS))
    # Shares of 0.385 at 0.25 and 0.76 at 0.5, the mean of seeds 0, 1, 2.
    assert sweeps["added"]["alpha/small/neggrad_plus/mamushi"] == [0.3, 0.35, 0.4, 0.45]
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(words) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
