"""Figures drawn for tests, and written by the stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mamushi.cli import main
from mamushi.figures.style import Style, styled
from mamushi.registry import load
from tests.support.grid_files import STYLE


def draw(name: str, tables: Path, grid: Mapping[str, Any], **style: Any) -> Figure:
    """A figure as it is before it is saved, with all texts in their places."""
    look = Style(**STYLE | style)
    with styled(look):
        figure = load("figure", name).draw(tables, grid, look)
        figure.canvas.draw()
    assert isinstance(figure, Figure)
    return figure


def written(name: str, tables: Path, grid: Mapping[str, Any], folder: Path) -> None:
    """Have the stage write a figure twice, and check that it is the same PDF and PNG."""
    given = json.dumps({"name": name, "figures": STYLE, "grid": grid, "code": "0" * 8})
    made = []
    for file in ("one.pdf", "two.pdf"):
        out = folder / file
        options = ["--tables", str(tables), "--out", str(out), "--settings", given]
        assert main(["figure", *options]) == 0
        made.append((out.read_bytes(), out.with_suffix(".png").read_bytes()))
    assert made[0] == made[1]
    assert made[0][0].startswith(b"%PDF")
    assert b"CreationDate" not in made[0][0]
    assert made[0][1].startswith(b"\x89PNG")
