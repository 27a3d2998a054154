"""Figures of the grid: what is drawn, how selectors look, and how the stage writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.evaluation.sad import sad_summary, sad_table
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import bands, draw, legend_texts, lines
from tests.support.grid_files import GRID, write_results

ONE_PANEL = GRID | {"datasets": ["alpha"], "models": ["small"]}


def write_tables(root: Path, grid: dict[str, Any]) -> Path:
    write_results(root, grid)
    sad = sad_table(grid, root)
    for kind, table in ((schemas.SAD, sad), (schemas.SAD_SUMMARY, sad_summary(sad))):
        write_table(root / "tables" / f"{kind.name}.parquet", kind, table)
    return root / "tables"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("results"), GRID)


def test_sad_is_solid_where_measured_and_dotted_to_the_ends(tables: Path) -> None:
    (axes,) = draw("sad", tables, ONE_PANEL).axes
    # Means over seeds 0, 1, 2 of 42 + seed, times the share that is left.
    solid, dotted = lines(axes, GRID), lines(axes, GRID, ":")
    np.testing.assert_allclose(solid["random"], [[0.1, 0.9 * 43], [0.5, 0.5 * 43]])
    assert solid.keys() == dotted.keys() == {*GRID["selectors"]}
    ends = [[0, 43], [0.1, 0.9 * 43], [0.5, 0.5 * 43], [1, 0]]
    np.testing.assert_allclose(dotted["random"], ends, atol=1e-12)


def test_bands_are_one_standard_error_and_absent_for_one_seed(tables: Path, tmp_path: Path) -> None:
    (axes,) = draw("sad", tables, ONE_PANEL).axes
    outline, *others = bands(axes)
    assert len(others) == 2
    at_half = outline[np.isclose(outline[:, 0], 0.5), 1]
    # Seeds give 21, 21.5 and 22 at budget 0.5.
    assert at_half.max() == pytest.approx(21.5 + 0.5 / np.sqrt(3))
    assert at_half.min() == pytest.approx(21.5 - 0.5 / np.sqrt(3))

    single = ONE_PANEL | {"seeds": [1]}
    figure = draw("sad", write_tables(tmp_path, single), single)
    assert bands(figure.axes[0]) == [] and "gold of another seed" not in legend_texts(figure)
    assert figure.legends[0].get_title().get_text() == ""


def stage(name: str, tables: Path, out: Path) -> int:
    settings = json.dumps({"name": name, "grid": ONE_PANEL, "code": "0" * 8})
    options = ["--tables", str(tables), "--out", str(out), "--settings", settings]
    return main(["figure", *options])


def test_the_stage_writes_pdf_and_png_and_the_same_bytes_again(
    tables: Path, tmp_path: Path
) -> None:
    written = []
    for out in (tmp_path / "one.pdf", tmp_path / "two.pdf"):
        assert stage("sad", tables, out) == 0
        written.append((out.read_bytes(), out.with_suffix(".png").read_bytes()))
    assert written[0] == written[1]
    assert written[0][0].startswith(b"%PDF") and b"CreationDate" not in written[0][0]
    assert written[0][1].startswith(b"\x89PNG")
