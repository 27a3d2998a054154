"""Figures: what is drawn, how selectors look, and that the same input gives the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.evaluation.curves import sad_table
from mamushi.evaluation.summary import sad_summary
from mamushi.figures.style import MARKS, SEEDS, SPARE, marks
from mamushi.registry import plugins
from tests.support.figures import draw, written
from tests.support.grid_files import GRID, STYLE, write_results

ONE_PANEL = GRID | {"datasets": ["alpha"], "models": ["small"]}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_results(root, GRID)
    summary = sad_summary(sad_table(GRID, root))
    write_table(root / "tables" / "sad_summary.parquet", schemas.SAD_SUMMARY, summary)
    return root / "tables"


def drawn(tables: Path, name: str, grid: dict[str, Any], **style: Any) -> Figure:
    return draw(name, tables, grid, **style)


def named(axes: Any) -> dict[str, Any]:
    """Lines of a panel by their label in the legend."""
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    return {label: line for label, line in lines.items() if not label.startswith("_")}


def legend_texts(figure: Figure) -> list[str]:
    assert len(figure.legends) == 1
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("name", ["sad", "perplexity"])
def test_the_picture_says_what_its_bands_are(tables: Path, name: str) -> None:
    (legend,) = drawn(tables, name, GRID).legends
    assert legend.get_title().get_text() == SEEDS


def test_sad_has_a_panel_per_dataset_and_model(tables: Path) -> None:
    figure = drawn(tables, "sad", GRID)
    assert len(figure.axes) == 2 * 3
    assert [axes.get_title() for axes in figure.axes] == ["small", "large", "odd_one", "", "", ""]
    assert figure.axes[0].get_ylabel().startswith("alpha")
    assert figure.axes[3].get_ylabel().startswith("beta")
    assert legend_texts(figure) == ["Random", "Mamushi", "my_own", "gold of another seed"]
    # Seeds 0, 1 and 2 have gold standards 1, 2 and 1 apart.
    np.testing.assert_allclose(named(figure.axes[0])["gold of another seed"].get_ydata(), 4 / 3)


def test_sad_is_solid_where_measured_and_dotted_to_the_ends(tables: Path) -> None:
    (axes,) = drawn(tables, "sad", ONE_PANEL).axes
    solid = [line for line in axes.get_lines() if line.get_linestyle() == "-"]
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert (len(solid), len(dotted)) == (3, 6)
    for line in solid:
        np.testing.assert_allclose(line.get_xdata(), [0.1, 0.5])
    assert {tuple(line.get_xdata()) for line in dotted} == {(0.0, 0.1), (0.5, 1.0)}
    # Means over seeds 0, 1, 2 of 42 + seed, times the share that is left.
    np.testing.assert_allclose(named(axes)["Random"].get_ydata(), [0.9 * 43, 0.5 * 43])


def test_bands_are_one_standard_error_and_absent_for_one_seed(tables: Path, tmp_path: Path) -> None:
    (axes,) = drawn(tables, "sad", ONE_PANEL).axes
    assert len(axes.collections) == 3
    outline = axes.collections[0].get_paths()[0].vertices
    at_half = outline[np.isclose(outline[:, 0], 0.5), 1]
    # Seeds give 21, 21.5 and 22 at budget 0.5.
    assert at_half.max() == pytest.approx(21.5 + 0.5 / np.sqrt(3))
    assert at_half.min() == pytest.approx(21.5 - 0.5 / np.sqrt(3))

    single = ONE_PANEL | {"seeds": [1]}
    write_results(tmp_path, single)
    summary = sad_summary(sad_table(single, tmp_path))
    write_table(tmp_path / "sad_summary.parquet", schemas.SAD_SUMMARY, summary)
    (axes,) = drawn(tmp_path, "sad", single).axes
    assert len(axes.collections) == 0
    assert len(named(axes)) == 3


def test_a_logarithmic_axis_leaves_out_the_zero_at_the_end(tables: Path) -> None:
    (axes,) = drawn(tables, "sad", ONE_PANEL, log_scale=True).axes
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] > 1
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    ends = [line.get_ydata()[-1] for line in dotted if line.get_xdata()[-1] == 1.0]
    assert len(ends) == 3
    assert np.isnan(ends).all()


def test_perplexity_shows_both_domains_and_the_levels_between_which_they_move(tables: Path) -> None:
    figure = drawn(tables, "perplexity", GRID)
    assert len(figure.axes) == 2 * 2 * 3
    forget, retain = named(figure.axes[0]), named(figure.axes[3])
    assert legend_texts(figure) == [
        "Random",
        "Mamushi",
        "my_own",
        "gold standard",
        "nothing removed",
    ]
    assert set(forget["gold standard"].get_ydata()) == {61.0}
    assert set(forget["nothing removed"].get_ydata()) == {20.0}
    assert set(retain["gold standard"].get_ydata()) == {10.0}
    np.testing.assert_allclose(forget["Random"].get_ydata(), [20 + 41 * 0.1, 20 + 41 * 0.5])


def test_a_selector_looks_the_same_in_every_figure(tables: Path) -> None:
    full = named(drawn(tables, "sad", GRID).axes[0])
    part = named(drawn(tables, "perplexity", ONE_PANEL | {"selectors": ["mamushi"]}).axes[0])
    assert to_hex(full["Mamushi"].get_color()) == to_hex(part["Mamushi"].get_color())
    assert full["Mamushi"].get_marker() == part["Mamushi"].get_marker()


def test_every_selector_has_a_look_of_its_own() -> None:
    colours, markers = zip(*MARKS.values(), *SPARE, strict=True)
    assert len(set(colours)) == len(set(markers)) == len(colours)
    assert set(plugins("selector")) <= set(MARKS)


def test_own_selectors_take_spare_looks_in_order() -> None:
    found = marks(["mine", "random", "yours"])
    assert [found[name]["color"] for name in ("mine", "yours")] == [SPARE[0][0], SPARE[1][0]]


def test_a_curve_that_the_table_lacks_is_named(tables: Path) -> None:
    with pytest.raises(UserError, match="no rows for alpha, small, vmf"):
        drawn(tables, "sad", ONE_PANEL | {"selectors": ["vmf"]})


@pytest.mark.parametrize("name", ["sad", "perplexity"])
def test_the_stage_writes_pdf_and_png_and_the_same_bytes_again(
    tables: Path, tmp_path: Path, name: str
) -> None:
    written(name, tables, ONE_PANEL, tmp_path)


def test_an_unknown_figure_lists_the_known_ones(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = json.dumps({"name": "pie", "figures": STYLE, "grid": ONE_PANEL, "code": "0" * 8})
    options = ["--tables", str(tables), "--out", str(tmp_path / "x.pdf"), "--settings", settings]
    assert main(["figure", *options]) == 2
    said = capsys.readouterr().err
    assert "unknown figure 'pie'; known are: " in said
    assert "perplexity" in said
    assert list(tmp_path.iterdir()) == []
