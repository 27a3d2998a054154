"""The figure of what is left: a line per number that could be estimated, beside gold and start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.evaluation.audit_texts import audit_texts
from tests.support.audit_files import AXES, write_all
from tests.support.figures import draw


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    root = tmp_path_factory.mktemp("left")
    write_all(root / "results")
    kind, table = audit_texts(AXES, {"small": "beta0"}, [], root / "results")[-1]
    assert kind is schemas.LEFT
    write_table(root / "left.parquet", kind, table)
    return root, table.to_pylist()


def test_every_number_has_its_line(made: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, rows = made
    figure = draw("left", folder, AXES)
    assert len(figure.axes) == 2
    for axes, question in zip(figure.axes, ("member", "memorized"), strict=True):
        told = [r for r in rows if r["question"] == question and r["value"] is not None]
        assert len(axes.get_yticks()) == len(told) > 5
        lines = {str(line.get_label()): line for line in axes.get_lines()}
        np.testing.assert_allclose(
            np.asarray(lines["model"].get_xdata()), [r["value"] for r in told]
        )
        np.testing.assert_allclose(
            np.asarray(lines["gold standard"].get_xdata()), [r["gold"] for r in told]
        )
        before = [r["start"] for r in told if r["start"] is not None]
        np.testing.assert_allclose(np.asarray(lines["before"].get_xdata()), before)
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert len(set(names)) == len(names)
        assert any(name.startswith("NegGrad+, Random 0.5: removed") for name in names)
        assert any("planted 4×" in name for name in names)
