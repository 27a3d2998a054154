"""Draw one figure from the result tables, as PDF and PNG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, writes
from mamushi.stages._settings import Config, Settings


class Figure(Settings):
    """Settings of the stage ``figure``: what is drawn of which axes or cell."""

    name: str
    grid: dict[str, Any]


def settings(config: Config, shown: Mapping[str, Any], name: str) -> Figure:
    return Figure(
        name=name,
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
    from matplotlib import rc_context

    from mamushi.figures.style import HOUSE, save
    from mamushi.registry import load

    module = load("figure", settings.name)
    with rc_context(HOUSE):
        save(module.draw(files.tables, settings.grid), files.out)
