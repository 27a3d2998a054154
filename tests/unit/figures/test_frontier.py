"""The figure of the frontier: what is drawn where, and what a missing curve leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.figures.run import NEUTRAL
from mamushi.figures.style import MARKS
from tests.support.figures import bands, draw, legend_texts

BETAS = (0.0, 0.5, 1.0)
GRID: dict[str, Any] = {
    "datasets": ["known", "real"],
    "models": ["small", "large"],
    "seeds": [0, 1],
    "selectors": ["random", "mamushi", "lr_cos"],
}


def row(dataset: str, model: str, seed: int, selector: str, beta: float) -> dict[str, Any]:
    height = {"random": 1.0, "mamushi": 2.0, "lr_cos": 3.0}[selector] + seed
    removal, preservation = height * beta, height * (1 - beta)
    known = dataset == "known"
    return {
        **{"dataset": dataset, "model": model, "seed": seed, "selector": selector, "beta": beta},
        **{"removed": int(10 * beta), "form": "threshold"},
        **{"removal": removal, "removal_low": removal - 0.5, "removal_high": removal + 1},
        "preservation": preservation,
        "preservation_low": preservation - 0.25,
        "preservation_high": preservation + 0.25,
        "exact_removal": removal + 0.125 if known else None,
        "exact_preservation": preservation + 0.25 if known else None,
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        row(dataset, model, seed, selector, beta)
        for dataset in GRID["datasets"]
        for model in GRID["models"]
        for seed in (0, 1, 2)
        for selector in GRID["selectors"]
        for beta in BETAS
    ]
    table = pa.Table.from_pylist(rows, schema=schemas.FRONTIER.schema)
    write_table(folder / "frontier.parquet", schemas.FRONTIER, table)
    return folder


def drawn(tables: Path, grid: dict[str, Any]) -> tuple[Figure, np.ndarray[Any, Any]]:
    figure = draw("frontier", tables, grid)
    return figure, np.array(figure.axes).reshape(-1, len(grid["models"]))


def lines(panel: Any, style: str) -> dict[str, np.ndarray[Any, Any]]:
    """Heights by colour of the lines of a panel that are drawn in a style."""
    return {
        to_hex(line.get_color()).upper(): np.asarray(line.get_ydata())
        for line in panel.get_lines()
        if line.get_linestyle() == style and len(line.get_xdata())
    }


def test_panels_and_means_over_the_seeds_of_the_grid(tables: Path) -> None:
    figure, axes = drawn(tables, GRID)
    assert axes.shape == (4, 2)
    assert [axis.get_title() for axis in axes[0]] == ["small", "large"]
    firsts = [axis.get_ylabel().split("\n")[0] for axis in axes[:, 0]]
    assert firsts == ["known: removal", "known: preservation", "real: removal",
                      "real: preservation"]  # fmt: skip
    assert [axis.get_xlabel() for axis in axes[:, 0]] == ["", "", "", "deletion budget β"]
    for i in range(4):
        found = lines(axes[i, 1], "-")
        heights = {"random": 1.5, "mamushi": 2.5, "lr_cos": 3.5}
        assert found.keys() == {MARKS[name][0].upper() for name in heights}
        for name, height in heights.items():
            shape = np.array(BETAS) if i % 2 == 0 else 1 - np.array(BETAS)
            assert found[MARKS[name][0].upper()] == pytest.approx(height * shape)
    assert {*legend_texts(figure)} == {"Random", "Mamushi", "LR-COS", "at the exact ratio"}


def test_exact_curves_where_they_are_known(tables: Path) -> None:
    _, axes = drawn(tables, GRID)
    for i, shift in ((0, 0.125), (1, 0.25)):
        exact, estimated = lines(axes[i, 0], "--"), lines(axes[i, 0], "-")
        # Its dots count as dashes.
        exact.pop(NEUTRAL.upper())
        assert exact.keys() == estimated.keys()
        assert all(exact[c] == pytest.approx(estimated[c] + shift) for c in exact)
    assert {*lines(axes[2, 0], "--"), *lines(axes[3, 0], "--")} == {NEUTRAL.upper()}
    figure, axes = drawn(tables, GRID | {"datasets": ["real"]})
    assert "at the exact ratio" not in legend_texts(figure)
    assert axes.shape == (2, 2)


@pytest.mark.parametrize(
    ("selectors", "banded"),
    [
        (["random", "mamushi", "lr_cos"], ["random", "mamushi"]),
        (["lr_cos", "mamushi"], ["mamushi"]),
        (["lr_cos"], ["lr_cos"]),
    ],
)
def test_bands(tables: Path, selectors: list[str], banded: list[str]) -> None:
    _, axes = drawn(tables, GRID | {"selectors": selectors})
    shapes = [c for c in axes[0, 0].collections if isinstance(c, PolyCollection)]
    colours = [to_hex(shape.get_facecolor()[0]).upper() for shape in shapes]
    assert colours == [MARKS[name][0].upper() for name in selectors if name in banded]
    outlines = bands(axes[0, 0])
    for corners, name in zip(outlines, [s for s in selectors if s in banded], strict=True):
        height = {"random": 1.5, "mamushi": 2.5, "lr_cos": 3.5}[name]
        at_end = corners[np.isclose(corners[:, 0], 1.0), 1]
        assert at_end.min() == pytest.approx(height - 0.5)
        assert at_end.max() == pytest.approx(height + 1)


def test_the_level_of_all_removed_and_what_is_below_0(tables: Path) -> None:
    _, axes = drawn(tables, GRID)
    for i, level in enumerate((2.5, 0.0, 2.5, 0.0)):
        panel = axes[i, 0]
        assert set(lines(panel, "--")[NEUTRAL.upper()]) == {level}
        said = [text.get_text() for text in panel.texts]
        assert said == ["all removed, β = 1", "below 0: error of the estimate"][: 1 + i % 2]
        frame = panel.get_window_extent()
        for text in panel.texts:
            box = text.get_window_extent()
            assert frame.x0 <= box.x0 and box.x1 <= frame.x1
            assert frame.y0 <= box.y0
    assert axes[1, 0].get_ylim()[0] < 0


@pytest.mark.parametrize("selectors", [["random", "mamushi", "lr_cos"], ["lr_cos"]])
def test_the_picture_says_what_its_bands_are(tables: Path, selectors: list[str]) -> None:
    figure, _ = drawn(tables, GRID | {"selectors": selectors})
    (legend,) = figure.legends
    said = " ".join(legend.get_title().get_text().split())
    of = "Random and Mamushi" if len(selectors) > 1 else "all"
    assert said.startswith(f"band ({of}): 95% interval over texts, calibration and")
    assert legend.get_window_extent().x0 >= 0
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_a_missing_curve_is_named(tables: Path) -> None:
    with pytest.raises(UserError, match="no rows of all seeds for real, small, oracle"):
        drawn(tables, GRID | {"datasets": ["real"], "selectors": ["oracle"]})
