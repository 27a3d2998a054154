"""Figures of grids: what is drawn, and how the stage writes them."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection, PathCollection

from mamushi.cli import main
from mamushi.evaluation.half_gap import half_gap_table, unlearning_table
from mamushi.evaluation.sad_tables import sad_summary, sad_table
from mamushi.figures.style import line_style
from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi_extras.effects.schemas import EFFECTS
from tests.support.figures import bands, draw, legend_texts, lines, named
from tests.support.grid_files import GRID, write_results
from tests.support.unlearning_files import AXES, sweeps_of, write_runs

ONE_PANEL = GRID | {"datasets": ["alpha"], "models": ["small"]}


def write_tables(folder: Path, *tables: tuple[Any, pa.Table]) -> Path:
    for kind, table in tables:
        write_table(folder / f"{kind.name}.parquet", kind, table)
    return folder


def sad_tables(root: Path, grid: dict[str, Any]) -> Path:
    write_results(root, grid)
    sad = sad_table(grid, root)
    return write_tables(root, (schemas.SAD, sad), (schemas.SAD_SUMMARY, sad_summary(sad)))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sad_tables(tmp_path_factory.mktemp("results"), GRID)


def test_sad_is_solid_where_measured_and_dotted_to_the_ends(tables: Path, tmp_path: Path) -> None:
    (axes,) = draw("sad", tables, ONE_PANEL).axes
    # Means over seeds 0, 1, 2 of 42 + seed, times the share that is left.
    solid, dotted = lines(axes, GRID), lines(axes, GRID, ":")
    np.testing.assert_allclose(solid["random"], [[0.1, 0.9 * 43], [0.5, 0.5 * 43]])
    assert solid.keys() == dotted.keys() == {*GRID["selectors"]}
    ends = [[0, 43], [0.1, 0.9 * 43], [0.5, 0.5 * 43], [1, 0]]
    np.testing.assert_allclose(dotted["random"], ends, atol=1e-12)
    outline, _, _ = bands(axes)
    # Seeds give 21, 21.5 and 22 at budget 0.5: a band is one standard error.
    edge = outline[np.isclose(outline[:, 0], 0.5), 1]
    assert [edge.min(), edge.max()] == pytest.approx([21.5 - 0.5 / 3**0.5, 21.5 + 0.5 / 3**0.5])
    single = ONE_PANEL | {"seeds": [1]}
    figure = draw("sad", sad_tables(tmp_path, single), single)
    assert bands(figure.axes[0]) == [] and "gold of another seed" not in legend_texts(figure)
    crowded = line_style({"selectors": ["stack", "mamushi", "cross_entropy", "oracle"]})["palette"]
    assert len({*crowded.values()}) == 4


def test_the_stage_writes_pdf_and_png_and_the_same_bytes_again(
    tables: Path, tmp_path: Path
) -> None:
    written = []
    settings = json.dumps({"name": "sad", "grid": ONE_PANEL, "code": "0" * 8})
    for out in (tmp_path / "one.pdf", tmp_path / "two.pdf"):
        files = [str(tables / f"{name}.parquet") for name in ("sad", "sad_summary")]
        options = ["--out", str(out), "--settings", settings]
        assert main(["figure", "--tables", *files, *options]) == 0
        written.append((out.read_bytes(), out.with_suffix(".png").read_bytes()))
    assert written[0] == written[1]
    assert written[0][0].startswith(b"%PDF") and b"CreationDate" not in written[0][0]
    assert written[0][1].startswith(b"\x89PNG")


def test_shares_cross_the_target_at_the_budgets_of_the_table(tmp_path: Path) -> None:
    write_runs(tmp_path, AXES, deep=None)
    points = unlearning_table(AXES, {"small": "beta0"}, sweeps_of(AXES), tmp_path)
    budgets = half_gap_table(points, target=0.5, retain_cap=5.6)
    write_tables(tmp_path, (schemas.UNLEARNING, points), (schemas.HALF_GAP, budgets))
    figure = draw("half_gap", tmp_path, AXES)
    share, cost, *unlearned = figure.axes
    labels = [share.get_ylabel(), unlearned[0].get_ylabel()]
    assert labels == ["alpha\nsmall\nRetraining", "alpha\nsmall\nNegGrad+"]
    # The mean over seeds 0, 1, 2 adds a hundredth.
    expected = [[0, 0], [0.25, 0.385], [0.5, 0.76], [1, 1]]
    np.testing.assert_allclose(lines(share, AXES)["mamushi"], expected, atol=1e-9)
    np.testing.assert_allclose(lines(cost, AXES)["random"][1:3, 1], [2, 3])
    hollow = [line for line in share.get_lines() if line.get_markerfacecolor() == "white"]
    assert {float(line.get_ydata()[0]) for line in hollow} == {0.5}
    crossings = [float(line.get_xdata()[0]) for line in hollow]
    assert crossings == pytest.approx([0.49, 0.25 + 0.25 * 0.115 / 0.375], abs=1e-3)
    assert {*named(share)} >= {"target", "gold standard"}


def test_recovered_and_deep_stand_side_by_side(tmp_path: Path) -> None:
    """Lists of chance are one line, which the table calls random."""
    grid = ONE_PANEL | {"seeds": [0], "selectors": ["random", "random_2", "mamushi"]}
    fixed = {"dataset": "alpha", "model": "small", "lists": 1, "seeds": 1, "retain_margin": 0.02}
    fixed |= {"steps": "aligned", "equal_steps": True, "non_inferior": "yes"}
    slopes, rows = {"random": 0.8, "mamushi": 1.6}, []
    for (selector, slope), beta in product(slopes.items(), (0.25, 0.75)):
        row = {**dict.fromkeys(EFFECTS.schema.names), **fixed, "selector": selector, "beta": beta}
        for name, value in (("recovered_net", slope * beta / 2), ("deep_net", slope * beta)):
            row |= {name: value, f"{name}_low": value - 0.1, f"{name}_high": value + 0.1}
        rows.append(row)
    rows[-1]["deep_net_high"] = 2.4
    table = pa.Table.from_pylist(rows, schema=EFFECTS.schema)
    figure = draw("shares", write_tables(tmp_path, (EFFECTS, table)), grid)
    whole_gap, deep = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["of the whole gap", "of the deep gap"]
    np.testing.assert_allclose(lines(whole_gap, grid)["mamushi"], [[0.25, 0.2], [0.75, 0.6]])
    in_table = {**grid, "selectors": [*slopes]}
    np.testing.assert_allclose(lines(deep, in_table)["random"], [[0.25, 0.2], [0.75, 0.6]])
    (bars,) = (shape for shape in deep.collections if isinstance(shape, LineCollection))
    heights = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(heights, [[0.1, 0.3], [0.5, 0.7], [0.3, 0.5], [1.1, 2.4]])
    # The last bar leaves its panel by an arrow at the edge.
    arrow = next(shape for shape in deep.collections if isinstance(shape, PathCollection))
    np.testing.assert_allclose(arrow.get_offsets(), [[0.75, deep.get_ylim()[1]]])
    assert lines(deep, grid, ":")["mamushi"][[0, -1]].tolist() == [[0, 0], [1, 1]]
    names = ["Random", "Mamushi", "in proportion", "nothing removed", "gold standard"]
    assert sorted(legend_texts(figure)) == sorted(names)
