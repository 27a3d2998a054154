"""The figure of relearning: which lines it has, where, and what it refuses."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.figures.style import MARKS
from tests.support.figures import bands, draw, named

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


def write_rows(folder: Path, without: dict[str, Any] | None = None) -> Path:
    sources = [("gold", None), *product(GRID["unlearners"], GRID["selectors"])]
    cells = product(GRID["datasets"], GRID["models"], GRID["seeds"], sources, STEPS)
    rows = [
        {
            **{"dataset": dataset, "model": model, "seed": seed},
            **{"source": source, "selector": selector, "step": step, "examples": 4},
            "beta": None if selector is None else 0.2,
            "ppl_forget": forget(source, selector, seed, step),
            **{"ppl_retain": 10.0, "relapse": None},
        }
        for dataset, model, seed, (source, selector), step in cells
    ]
    if without is not None:
        rows = [row for row in rows if any(row[key] != value for key, value in without.items())]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    write_table(folder / "relearning.parquet", schemas.RELEARNING, columns)
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("tables"))


def test_lines_are_means_over_seeds_with_the_gold_standard_as_reference(tables: Path) -> None:
    (axes,) = draw("relearning", tables, ONE).axes
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
    _, outline, _ = bands(axes)
    at_two = outline[np.isclose(outline[:, 0], 2), 1]
    # The seeds give 48 and 50: a standard deviation of root 2, over root 2.
    assert (at_two.min(), at_two.max()) == pytest.approx((48.0, 50.0))

    (axes,) = draw("relearning", tables, ONE | {"seeds": [1]}).axes
    assert bands(axes) == []
    assert named(axes)["Random"].get_ydata()[0] == pytest.approx(62.0)


def test_steps_are_logarithmic_from_one_on(tables: Path) -> None:
    (axes,) = draw("relearning", tables, ONE).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "4"]
    places = axes.transData.transform([[step, 50.0] for step in STEPS])[:, 0]
    np.testing.assert_allclose(np.diff(places), np.diff(places)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ({"source": "gold"}, "alpha, small, gold"),
        ({"selector": "mamushi", "source": "salun"}, "alpha, small, salun, mamushi"),
        ({"dataset": "beta"}, "beta, small, gold"),
        ({"seed": 1}, "alpha, small, gold"),
        ({"seed": 1, "step": 4, "source": "gold"}, "alpha, small, gold"),
    ],
)
def test_missing_rows_are_named(tmp_path: Path, without: dict[str, Any], missing: str) -> None:
    with pytest.raises(UserError, match=f"no rows of all seeds for {missing};"):
        draw("relearning", write_rows(tmp_path, without), GRID)
