"""The figure of the diagnostics: what it shows of the scores of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.evidence.diagnostics import (
    calibration_error,
    fisher,
    fold_areas,
    read_scores,
    reliability,
)
from mamushi.figures.style import TONES
from mamushi.io import paths, schemas
from mamushi.io.tables import write_table
from mamushi.selection.metrics import auc
from tests.support.figures import draw, legend_texts

RUN = {"dataset": "jigsaw", "model": "gemma-2-2b", "seed": 3}
N1, N2 = 60, 140


def scores() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    forget = np.arange(N1 + N2) < N1
    return rng.normal(np.where(forget, 2.0, -2.0), 1.5), forget


def write_scores(root: Path, selector: str) -> None:
    score, forget = scores()
    n = len(score)
    write_table(
        paths.under(root, paths.SCORES, **RUN, selector=selector),
        schemas.SCORES,
        {
            "id": [f"t{i}" for i in range(n)],
            "domain": ["forget" if one else "retain" for one in forget],
            "score": score,
            "rank": pa.array(np.arange(1, n + 1), mask=~forget),
            "fold": pa.array(np.arange(n) % 4, pa.int16()),
        },
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_scores(folder, "mamushi")
    return folder


def drawn(root: Path, name: str, **grid: Any) -> Figure:
    return draw(name, root, RUN | {"selector": "mamushi"} | grid)


def line(panel: Any, tone: str) -> np.ndarray[Any, Any]:
    """The points of the longest line of that tone."""
    found = [
        np.array(one.get_xydata())
        for one in panel.get_lines()
        if to_hex(one.get_color()) == TONES[tone].lower()
    ]
    return max(found, key=len)


def test_diagnostics_draw_distributions_rates_and_ranks_with_the_numbers_of_the_table(
    root: Path,
) -> None:
    score, forget = scores()
    figure = drawn(root, "diagnostics")
    first, second, third, fourth = figure.axes
    assert figure.get_suptitle().endswith(": Mamushi")
    assert legend_texts(figure) == ["forget", "retain", "a fold"]
    assert first.get_title() == f"(a) $D_F$ = {fisher(score[forget], score[~forget]):.2f}"
    for shape in first.collections:
        x, y = shape.get_paths()[0].vertices.T
        assert 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) == pytest.approx(1)
    for name, mean in (("forget", score[forget].mean()), ("retain", score[~forget].mean())):
        np.testing.assert_allclose(line(first, name)[:, 0], mean)
    areas = fold_areas(read_scores(paths.under(root, paths.SCORES, **RUN, selector="mamushi")))
    folds = f"folds {np.mean(areas):.3f} ± {np.std(areas):.3f}"
    assert second.get_title() == f"(b) AUC {auc(score, forget):.3f}, {folds}"
    tones = [to_hex(one.get_color()) for one in second.get_lines()]
    assert tones.count(TONES["a fold"].lower()) == 4
    area = np.trapezoid(line(second, "_both")[:, 1], line(second, "_both")[:, 0])
    assert area == pytest.approx(auc(score, forget))
    predicted, observed, _ = reliability(score, forget)
    np.testing.assert_allclose(line(third, "_both"), np.stack([predicted, observed], axis=1))
    assert third.get_title() == f"(c) ECE = {calibration_error(score, forget):.3f}"
    ranked = line(fourth, "forget")
    np.testing.assert_allclose(ranked[:, 1], np.sort(score[forget])[::-1])
    assert 0 < ranked[0, 0] < ranked[-1, 0] < 1
    assert f"ties 0 of {N1}" in fourth.get_title()
