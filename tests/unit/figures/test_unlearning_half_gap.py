"""The figure of half-gap budgets: curves, levels, crossings, and what it refuses to draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.evaluation.half_gap import half_gap_table, unlearning_table
from mamushi.figures.style import LABELS, MARKS, SEEDS
from tests.support.figures import bands, draw, legend_texts, named
from tests.support.unlearning_files import AXES, GOLD, heights, write_runs

WIDE = AXES | {"datasets": ["alpha", "beta"], "unlearners": ["neggrad_plus", "salun"]}


def write_tables(
    root: Path,
    axes: dict[str, Any],
    height: Callable[..., float] = heights,
    gold: tuple[float, float] = GOLD,
) -> Path:
    write_runs(root, axes, height=height, gold=gold)
    points = unlearning_table(axes, {"small": "beta0"}, root)
    budgets = half_gap_table(points, target=0.5, retain_cap=5.6)
    write_table(root / "tables" / "unlearning.parquet", schemas.UNLEARNING, points)
    write_table(root / "tables" / "half_gap.parquet", schemas.HALF_GAP, budgets)
    return root / "tables"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("results"), WIDE)


def hollow(panel: Any) -> dict[str, Any]:
    """The markers of crossings and of censored curves by selector."""
    colours = {to_hex(colour): name for name, (colour, _) in MARKS.items()}
    marks = [line for line in panel.get_lines() if line.get_markerfacecolor() == "white"]
    return {colours[to_hex(mark.get_markeredgecolor())]: mark for mark in marks}


def test_a_row_per_unlearner_and_a_column_per_dataset_and_model(tables: Path) -> None:
    figure = draw("half_gap", tables, WIDE)
    assert len(figure.axes) == 3 * 2
    assert figure.axes[0].get_title() == "alpha\nsmall"
    assert figure.axes[1].get_title() == "beta\nsmall"
    rows = [figure.axes[2 * i].get_ylabel().split("\n")[0] for i in range(3)]
    assert rows == ["Retraining", "NegGrad+", "SalUn"]
    assert figure.legends[0].get_title().get_text() == SEEDS
    assert legend_texts(figure) == ["Random", "Mamushi", "gold standard", "target", "start"]


def test_curves_are_means_with_bands_and_levels_are_the_tables(tables: Path) -> None:
    panel = draw("half_gap", tables, WIDE).axes[0]
    lines = named(panel)
    # 20 + 40 * (share + 0.01 seed), over seeds 0, 1, 2.
    np.testing.assert_allclose(lines["Random"].get_xdata(), [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(lines["Random"].get_ydata(), [20, 30.4, 40.4, 60])
    levels = {name: set(lines[name].get_ydata()) for name in ("start", "target", "gold standard")}
    assert levels == {"start": {20.0}, "target": {40.0}, "gold standard": {60.0}}
    outline, _ = bands(panel)
    at_half = outline[np.isclose(outline[:, 0], 0.5), 1]
    assert at_half.max() - 40.4 == pytest.approx(0.4 / np.sqrt(3))


def test_crossings_stand_on_the_target_and_on_the_curve(tables: Path) -> None:
    panel = draw("half_gap", tables, WIDE).axes[2]
    found = hollow(panel)
    assert set(found) == {"random", "mamushi"}
    for name, mark in found.items():
        (x,), (y,) = mark.get_xdata(), mark.get_ydata()
        assert y == 40.0
        line = named(panel)[LABELS[name]]
        assert np.interp(x, line.get_xdata(), line.get_ydata()) == pytest.approx(40.0)
        assert mark.get_marker() == MARKS[name][1]
    assert len([c for c in panel.collections if c.get_alpha() is None]) == 2


def test_a_panel_shows_the_gap_and_cuts_off_what_overshoots(tmp_path: Path) -> None:
    def wild(run: Any, unlearner: str, selector: str, beta: float) -> float:
        share = heights(run, unlearner, selector, beta)
        return share if unlearner == "retraining" else 1000 * share

    panel = draw("half_gap", write_tables(tmp_path, AXES, wild), AXES).axes[1]
    low, high = panel.get_ylim()
    assert low < 20
    assert 60 < high < 120
    assert named(panel)["Random"].get_ydata().max() > 10000


def test_without_a_gap_nothing_is_marked_and_one_seed_has_no_bands(tmp_path: Path) -> None:
    axes = AXES | {"seeds": [1]}
    tables = write_tables(tmp_path, axes, gold=(19.0, 9.0))
    panel = draw("half_gap", tables, axes).axes[0]
    assert hollow(panel) == {}
    assert bands(panel) == []
    assert len(named(panel)["Random"].get_ydata()) == 4


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"selectors": ["random", "vmf"]}, "alpha, small, retraining, vmf"),
        ({"unlearners": ["other"]}, "alpha, small, other, random"),
        ({"seeds": [0, 1, 2, 7]}, "alpha, small, retraining, random"),
    ],
)
def test_a_curve_that_the_table_lacks_is_named(
    tables: Path, changed: dict[str, Any], missing: str
) -> None:
    with pytest.raises(UserError, match=f"no rows of all seeds for {missing}") as caught:
        draw("half_gap", tables, WIDE | changed)
    assert caught.value.where == tables / "unlearning.parquet"
