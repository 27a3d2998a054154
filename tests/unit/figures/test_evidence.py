"""Figures of one run: what they show of its scores and its geometry, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.evidence.diagnostics import calibration_error, fisher, reliability
from mamushi.figures.style import COLOURS
from mamushi.io import paths, schemas
from mamushi.io.tables import write_table
from mamushi.selection.metrics import auc
from tests.support.figures import draw

RUN = {"dataset": "jigsaw", "model": "gemma-2-2b", "seed": 3}
N1, N2, K, WIDTH = 60, 140, 80, 256


def scores() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    forget = np.arange(N1 + N2) < N1
    return rng.normal(np.where(forget, 2.0, -2.0), 1.5), forget


def write_scores(root: Path, selector: str, *, both: bool) -> None:
    score, forget = scores()
    n = len(score)
    write_table(
        paths.under(root, paths.SCORES, **RUN, selector=selector),
        schemas.SCORES,
        {
            "id": [f"t{i}" for i in range(n)],
            "domain": ["forget" if one else "retain" for one in forget],
            "score": pa.array(score, mask=~forget & (not both)),
            "rank": pa.array(np.arange(1, n + 1), mask=~forget),
            "fold": pa.array(np.arange(n) % 4, pa.int16(), mask=np.full(n, not both)),
        },
    )


def geometric(components: int = K) -> dict[str, Any]:
    """Made-up columns with shapes like the paper's."""
    k = np.arange(1, components + 1)
    values = {"forget": 10 / np.sqrt(k), "retain": 30 / k**0.4}
    power = 0.9**k
    columns: dict[str, Any] = {"k": k, "power": power}
    columns["power_cumulative"] = np.cumsum(power) / power.sum()
    for name, singular in values.items():
        columns[f"singular_{name}"] = singular
        columns[f"energy_{name}"] = np.cumsum(singular**2) / (singular**2).sum()
        columns[f"variance_{name}"] = 0.6 * columns[f"energy_{name}"]
    columns["affinity"] = np.linspace(0.3, 0.5, components)
    columns["angle_median"] = np.linspace(60, 35, components)
    columns["angles_above_45"] = np.linspace(1, 0.35, components)
    columns["angle_sorted"] = np.linspace(5, 85, components)
    return columns


def write_geometry(root: Path, columns: dict[str, Any], details: dict[str, Any]) -> None:
    size = len(columns["k"])
    # Backwards: a table promises no order.
    shown = {name: values[::-1] for name, values in columns.items()}
    run = {name: [value] * size for name, value in RUN.items()}
    path = paths.under(root, paths.GEOMETRY, **RUN)
    write_table(path, schemas.GEOMETRY, {**run, **shown}, metadata={"details": details})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_scores(folder, "mamushi", both=True)
    write_scores(folder, "l2_norm", both=False)
    write_geometry(folder, geometric(), {"width": WIDTH})
    return folder


def drawn(root: Path, name: str, **grid: Any) -> Figure:
    return draw(name, root, RUN | {"selector": "mamushi"} | grid)


def texts(panel: Any) -> str:
    return "\n".join(text.get_text() for text in panel.texts)


def curve(panel: Any, colour: str) -> Any:
    """The thickest line of that colour."""
    lines = [line for line in panel.get_lines() if to_hex(line.get_color()) == colour.lower()]
    return max(lines, key=lambda line: line.get_linewidth())


def test_diagnostics_draw_distributions_rates_and_ranks_with_the_numbers_of_the_table(
    root: Path,
) -> None:
    score, forget = scores()
    figure = drawn(root, "diagnostics")
    first, second, third, fourth = figure.axes
    assert figure.get_suptitle().endswith(": Mamushi")
    assert [t.get_text() for t in first.get_legend().get_texts()] == ["forget", "retain"]
    assert f"$D_F$ = {fisher(score[forget], score[~forget]):.2f}" in texts(first)
    for patch in first.patches[::2]:
        height, edges, _ = patch.get_data()
        assert (height * np.diff(edges)).sum() == pytest.approx(1)
    # The diagonal, a line per fold, and the pooled one.
    assert len(second.get_lines()) == 1 + 4 + 1
    assert f"pooled AUC {auc(score, forget):.3f}" in texts(second)
    assert "4 folds " in texts(second)
    pooled = second.get_lines()[-1]
    area = np.trapezoid(pooled.get_ydata(), pooled.get_xdata())
    assert area == pytest.approx(auc(score, forget))
    predicted, observed, _ = reliability(score, forget)
    np.testing.assert_allclose(third.get_lines()[-1].get_xdata(), predicted)
    np.testing.assert_allclose(third.get_lines()[-1].get_ydata(), observed)
    assert f"ECE = {calibration_error(score, forget):.3f}" in texts(third)
    ranked = curve(fourth, COLOURS["forget"])
    np.testing.assert_allclose(ranked.get_ydata(), np.sort(score[forget])[::-1])
    assert 0 < ranked.get_xdata()[0] < ranked.get_xdata()[-1] < 1
    assert f"ties 0 of {N1}" in texts(fourth)


def test_subspaces_show_affinity_angles_and_energy(root: Path) -> None:
    figure = drawn(root, "subspaces")
    first, second, third, fourth, other = figure.axes
    columns = geometric()
    np.testing.assert_allclose(first.get_lines()[0].get_ydata(), columns["affinity"])
    assert set(first.get_lines()[1].get_ydata()) == {0.85}
    assert texts(first) == "same span, 0.85"
    np.testing.assert_allclose(second.get_lines()[0].get_ydata(), columns["angle_median"])
    np.testing.assert_allclose(other.get_lines()[0].get_ydata(), columns["angles_above_45"])
    assert len(third.patches) == K
    np.testing.assert_allclose([bar.get_height() for bar in third.patches], columns["angle_sorted"])
    angles = columns["angle_sorted"]
    counts = [(angles <= 30).sum(), ((angles > 30) & (angles <= 45)).sum(), (angles > 45).sum()]
    labels = [t.get_text() for t in third.get_legend().get_texts()]
    spans = ("up to 30°", "30–45°", "above 45°")
    assert labels == [f"{span}: {count}" for span, count in zip(spans, counts, strict=True)]
    levels = [set(line.get_ydata()) for line in third.get_lines()]
    assert levels == [{30.0}, {45.0}]
    for name in ("forget", "retain"):
        energy = curve(fourth, COLOURS[name]).get_ydata()
        np.testing.assert_allclose(energy, columns[f"energy_{name}"])
