"""The figures of one run's scores and of the frontier: what is drawn where."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex

from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.diagnostics import diagnose, reliability
from mamushi.figures.style import TONES
from mamushi.io import paths, schemas
from mamushi.io.tables import write_table
from mamushi.selection.metrics import auc
from tests.support.figures import bands, draw, legend_texts, lines, named

RUN = {"dataset": "jigsaw", "model": "gemma-2-2b", "seed": 3, "selector": "mamushi"}
N1, N2 = 60, 140


def line(panel: Any, tone: str) -> np.ndarray[Any, Any]:
    """The points of the longest line of that tone."""
    same = [one for one in panel.get_lines() if to_hex(one.get_color()) == TONES[tone].lower()]
    return max((np.array(one.get_xydata()) for one in same), key=len)


def test_diagnostics_draw_distributions_rates_and_ranks(tmp_path: Path) -> None:
    forget = np.arange(N1 + N2) < N1
    score = np.random.default_rng(0).normal(np.where(forget, 2.0, -2.0), 1.5)
    columns = {
        "id": [f"t{i}" for i in range(N1 + N2)],
        "domain": ["forget" if one else "retain" for one in forget],
        "score": score,
        "rank": pa.array(np.arange(1, N1 + N2 + 1), mask=~forget),
        "fold": pa.array(np.arange(N1 + N2) % 4, pa.int16()),
    }
    write_table(paths.under(tmp_path, paths.SCORES, **RUN), schemas.SCORES, columns)
    figure = draw("diagnostics", tmp_path, RUN)
    first, second, third, fourth = figure.axes
    assert figure.get_suptitle().endswith(": Mamushi")
    assert legend_texts(figure) == ["forget", "retain"]
    numbers = diagnose(RatioScores(score, forget))
    assert first.get_title() == f"(a) $D_F$ = {numbers['fisher']:.2f}"
    for name, mean in (("forget", score[forget].mean()), ("retain", score[~forget].mean())):
        np.testing.assert_allclose(line(first, name)[:, 0], mean)
    assert second.get_title() == f"(b) AUC {auc(score, forget):.3f}"
    area = np.trapezoid(line(second, "_both")[:, 1], line(second, "_both")[:, 0])
    assert area == pytest.approx(auc(score, forget))
    predicted, observed, _ = reliability(score, forget)
    np.testing.assert_allclose(line(third, "_both"), np.stack([predicted, observed], axis=1))
    assert third.get_title() == f"(c) ECE = {numbers['ece']:.3f}"
    np.testing.assert_allclose(line(fourth, "forget")[:, 1], np.sort(score[forget])[::-1])


BETAS = (0.0, 0.5, 1.0)
HEIGHTS = {"random": 1.0, "mamushi": 2.0, "lr_cos": 3.0}
"""Of the curves of seed 0; the next seed's are 1 higher."""
GRID: dict[str, Any] = {
    "datasets": ["first", "real"],
    "models": ["small", "large"],
    "seeds": [0, 1],
    "selectors": [*HEIGHTS],
}


def test_the_frontier_has_means_and_the_bands_of_ours_and_random(tmp_path: Path) -> None:
    rows = []
    axes_of_grid = (GRID["datasets"], GRID["models"], (0, 1, 2), GRID["selectors"], BETAS)
    for dataset, model, seed, selector, beta in product(*axes_of_grid):
        row = {"dataset": dataset, "model": model, "seed": seed, "selector": selector}
        row |= {"beta": beta, "removed": int(10 * beta)}
        for name, share in (("removal", beta), ("preservation", 1 - beta)):
            value = (HEIGHTS[selector] + seed) * share
            row |= {name: value, f"{name}_low": value - 0.25, f"{name}_high": value + 1}
        rows.append(row)
    table = pa.Table.from_pylist(rows, schema=schemas.FRONTIER.schema)
    write_table(tmp_path / "frontier.parquet", schemas.FRONTIER, table)
    figure = draw("frontier", tmp_path, GRID)
    axes = np.array(figure.axes).reshape(4, 2)
    assert [panel.get_title() for panel in axes[0]] == ["small", "large"]
    firsts = [panel.get_ylabel().split("\n")[:2] for panel in axes[:, 0]]
    assert firsts == [[d, q] for d in GRID["datasets"] for q in ("removal", "preservation")]
    for i, panel in enumerate(axes[:, 1]):
        shape = np.array(BETAS) if i % 2 == 0 else 1 - np.array(BETAS)
        solid = lines(panel, GRID)
        for name, height in HEIGHTS.items():
            np.testing.assert_allclose(solid[name][:, 1], (height + 0.5) * shape)
        level = named(panel)["all removed, β = 1"].get_ydata()
        assert set(level) == {2.5 if i % 2 == 0 else 0.0}
        # Ours and random have a band, which is cut where the lines end.
        assert len(bands(panel)) == 2
        assert panel.get_ylim()[1] < 4
    assert legend_texts(figure) == ["Random", "Mamushi", "LR-COS", "all removed, β = 1"]
