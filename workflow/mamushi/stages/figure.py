"""Draw one figure from the result tables, as PDF and PNG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Figure
from mamushi.running.stage import Job, option, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    tables: Path = option("folder of the result tables")
    out: Path = writes("the PDF; a PNG goes beside it")


def run(files: Files, chosen: Figure, job: Job) -> None:
    """Raises ``UserError`` for an unknown figure or a table without the grid's rows."""
    from mamushi.figures.style import Style, save, styled
    from mamushi.registry import load

    module = load("figure", chosen.name)
    style = Style(**chosen.figures)
    with styled(style):
        save(module.draw(files.tables, chosen.grid, style), files.out, style)
