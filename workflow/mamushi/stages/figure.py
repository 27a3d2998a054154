"""Draw one figure from the result tables, as PDF and PNG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mamushi.configuration.sections import Figures
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, writes
from mamushi.stages._settings import Config, Settings, part


class Figure(Settings):
    """Settings of the stage ``figure``: what is drawn of which axes or cell, in what style."""

    name: str
    figures: Figures
    grid: dict[str, Any]


def settings(config: Config, shown: Mapping[str, Any], name: str) -> Figure:
    return Figure(
        name=name,
        figures=part(Figures, config["figures"]),
        grid=dict(shown),
        code=digest(__name__, plugin("figure", name).module),
    )


def settings_of_cell(config: Config, name: str, dataset: str, model: str, seed: int) -> Figure:
    shown = {"dataset": dataset, "model": model, "seed": seed}
    if "scores" in plugin("figure", name).literals["READS"]:
        shown["selector"] = config["removal"]["ratio"]
    return settings(config, shown, name)


@dataclass(frozen=True, kw_only=True)
class Files:
    tables: Path = option("folder of the result tables")
    out: Path = writes("the PDF; a PNG goes beside it")


def run(files: Files, settings: Figure, job: Job) -> None:
    """Raises ``UserError`` for an unknown figure or a table without the grid's rows."""
    from mamushi.figures.style import Style, save, styled
    from mamushi.registry import load

    module = load("figure", settings.name)
    style = Style(**asdict(settings.figures))
    with styled(style):
        save(module.draw(files.tables, settings.grid, style), files.out, style)
