"""The figure of relearning: which lines it has, where, and what it refuses."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.figures.style import MARKS
from tests.support.figures import draw, written

GRID: dict[str, Any] = {
    "datasets": ["alpha", "beta"],
    "models": ["small"],
    "seeds": [0, 1],
    "selectors": ["random", "mamushi"],
    "unlearners": ["neggrad_plus", "salun"],
    "budget": 0.2,
}
ONE = GRID | {"datasets": ["alpha"], "unlearners": ["neggrad_plus"]}
STEPS = [0, 1, 2, 4]
START = {"gold": 80.0, "neggrad_plus": 60.0, "salun": 40.0}


def forget(source: str, selector: str | None, seed: int, step: int) -> float:
    """Perplexity falls by a tenth of its start a step; mamushi's is 5 higher, seed 1's 2."""
    return START[source] * (1 - step / 10) + 5 * (selector == "mamushi") + 2 * seed


def write_rows(
    folder: Path, grid: dict[str, Any] = GRID, without: dict[str, Any] | None = None
) -> Path:
    sources = [("gold", None), *product(grid["unlearners"], grid["selectors"])]
    rows = [
        {
            "dataset": dataset,
            "model": model,
            "seed": seed,
            "source": source,
            "selector": selector,
            "beta": None if selector is None else 0.2,
            "step": step,
            "examples": 4,
            "ppl_forget": forget(source, selector, seed, step),
            "ppl_retain": 10.0,
            "relapse": None,
        }
        for dataset, model, seed in product(grid["datasets"], grid["models"], grid["seeds"])
        for source, selector in sources
        for step in STEPS
    ]
    if without is not None:
        rows = [row for row in rows if any(row[key] != value for key, value in without.items())]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    write_table(folder / "relearning.parquet", schemas.RELEARNING, columns)
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("tables"))


def drawn(tables: Path, grid: dict[str, Any], **style: Any) -> Figure:
    return draw("relearning", tables, grid, **style)


def named(axes: Any) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axes.get_lines()}


def test_a_panel_per_dataset_and_model(tables: Path) -> None:
    figure = drawn(tables, GRID)
    assert [axes.get_title() for axes in figure.axes] == ["alpha\nsmall", "beta\nsmall"]
    assert figure.axes[0].get_ylabel() == "forget perplexity"
    assert {axes.get_xlabel() for axes in figure.axes} == {"relearning steps"}


def test_lines_are_means_over_seeds_with_the_gold_standard_as_reference(tables: Path) -> None:
    (axes,) = drawn(tables, ONE).axes
    lines = named(axes)
    assert list(lines) == ["gold standard", "Random", "Mamushi"]
    for name, source, extra in (
        ("gold standard", "gold", 0),
        ("Random", "neggrad_plus", 0),
        ("Mamushi", "neggrad_plus", 5),
    ):
        np.testing.assert_array_equal(lines[name].get_xdata(), STEPS)
        expected = [START[source] * (1 - step / 10) + extra + 1 for step in STEPS]
        np.testing.assert_allclose(lines[name].get_ydata(), expected)
    assert to_hex(lines["gold standard"].get_color()) == "#000000"
    assert lines["gold standard"].get_linestyle() == "--"
    assert to_hex(lines["Mamushi"].get_color()) == MARKS["mamushi"][0].lower()
    assert lines["Mamushi"].get_marker() == MARKS["mamushi"][1]


def test_the_bands_are_one_standard_error(tables: Path) -> None:
    (axes,) = drawn(tables, ONE).axes
    assert len(axes.collections) == 3
    outline = axes.collections[1].get_paths()[0].vertices
    at_two = outline[np.isclose(outline[:, 0], 2), 1]
    # The seeds give 48 and 50: a standard deviation of root 2, over root 2.
    assert (at_two.min(), at_two.max()) == pytest.approx((48.0, 50.0))


def test_one_seed_has_no_band(tables: Path) -> None:
    (axes,) = drawn(tables, ONE | {"seeds": [1]}).axes
    assert len(axes.collections) == 0
    assert named(axes)["Random"].get_ydata()[0] == pytest.approx(62.0)


def test_unlearners_differ_in_dashes_and_selectors_in_colour(tables: Path) -> None:
    figure = drawn(tables, GRID)
    lines = named(figure.axes[0])
    assert len(lines) == 5
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(lines)
    looks = {name: (to_hex(line.get_color()), line.get_linestyle()) for name, line in lines.items()}
    unlearned = [look for name, look in looks.items() if name != "gold standard"]
    assert len(set(unlearned)) == 4
    assert len({colour for colour, _ in unlearned}) == 2
    # Of the first unlearner, lines are solid; matplotlib calls all other patterns "--".
    assert [line for _, line in unlearned] == ["-", "-", "--", "--"]


def test_steps_are_logarithmic_from_one_on(tables: Path) -> None:
    axes = drawn(tables, GRID).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "4"]
    places = axes.transData.transform([[step, 50.0] for step in STEPS])[:, 0]
    np.testing.assert_allclose(np.diff(places), np.diff(places)[0], rtol=1e-6)


def test_perplexity_is_logarithmic_where_asked_for(tables: Path) -> None:
    assert drawn(tables, ONE).axes[0].get_yscale() == "linear"
    assert drawn(tables, ONE, log_scale=True).axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ({"source": "gold"}, "for alpha, small, gold;"),
        ({"selector": "mamushi", "source": "salun"}, "for alpha, small, salun, mamushi;"),
        ({"dataset": "beta"}, "for beta, small, gold;"),
        ({"seed": 1}, "no rows of all 2 seeds at all steps"),
        ({"seed": 1, "step": 4, "source": "gold"}, "for alpha, small, gold;"),
    ],
)
def test_missing_rows_are_named(tmp_path: Path, without: dict[str, Any], message: str) -> None:
    write_rows(tmp_path, without=without)
    with pytest.raises(UserError, match=message):
        drawn(tmp_path, GRID)


def test_the_stage_writes_the_same_bytes_again(tables: Path, tmp_path: Path) -> None:
    written("relearning", tables, GRID, tmp_path)
