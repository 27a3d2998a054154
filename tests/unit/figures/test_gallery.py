"""Figures of the grid: what is drawn, how selectors look, and how the stage writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.evaluation.curves import sad_table
from mamushi.evaluation.summary import sad_summary
from mamushi.figures.style import SEEDS
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import bands, draw, legend_texts, named
from tests.support.grid_files import GRID, write_results

ONE_PANEL = GRID | {"datasets": ["alpha"], "models": ["small"]}


def write_summary(root: Path, grid: dict[str, Any]) -> Path:
    write_results(root, grid)
    summary = sad_summary(sad_table(grid, root))
    write_table(root / "tables" / "sad_summary.parquet", schemas.SAD_SUMMARY, summary)
    return root / "tables"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_summary(tmp_path_factory.mktemp("results"), GRID)


def test_sad_has_a_panel_per_dataset_and_model(tables: Path) -> None:
    figure = draw("sad", tables, GRID)
    assert [axes.get_title() for axes in figure.axes] == ["small", "large", "odd_one", "", "", ""]
    assert [figure.axes[i].get_ylabel().split("\n")[0] for i in (0, 3)] == ["alpha", "beta"]
    assert legend_texts(figure) == ["Random", "Mamushi", "my_own", "gold of another seed"]
    assert figure.legends[0].get_title().get_text() == SEEDS
    # Seeds 0, 1 and 2 have gold standards 1, 2 and 1 apart.
    np.testing.assert_allclose(named(figure.axes[0])["gold of another seed"].get_ydata(), 4 / 3)


def test_sad_is_solid_where_measured_and_dotted_to_the_ends(tables: Path) -> None:
    (axes,) = draw("sad", tables, ONE_PANEL).axes
    solid = [line for line in axes.get_lines() if line.get_linestyle() == "-"]
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert (len(solid), len(dotted)) == (3, 6)
    for line in solid:
        np.testing.assert_allclose(line.get_xdata(), [0.1, 0.5])
    assert {tuple(line.get_xdata()) for line in dotted} == {(0.0, 0.1), (0.5, 1.0)}
    # Means over seeds 0, 1, 2 of 42 + seed, times the share that is left.
    np.testing.assert_allclose(named(axes)["Random"].get_ydata(), [0.9 * 43, 0.5 * 43])


def test_bands_are_one_standard_error_and_absent_for_one_seed(tables: Path, tmp_path: Path) -> None:
    (axes,) = draw("sad", tables, ONE_PANEL).axes
    outline, *others = bands(axes)
    assert len(others) == 2
    at_half = outline[np.isclose(outline[:, 0], 0.5), 1]
    # Seeds give 21, 21.5 and 22 at budget 0.5.
    assert at_half.max() == pytest.approx(21.5 + 0.5 / np.sqrt(3))
    assert at_half.min() == pytest.approx(21.5 - 0.5 / np.sqrt(3))

    single = ONE_PANEL | {"seeds": [1]}
    (axes,) = draw("sad", write_summary(tmp_path, single), single).axes
    assert (len(bands(axes)), len(named(axes))) == (0, 3)


def test_a_curve_that_the_table_lacks_is_named(tables: Path) -> None:
    with pytest.raises(UserError, match="no rows for alpha, small, vmf"):
        draw("sad", tables, ONE_PANEL | {"selectors": ["vmf"]})


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
