"""Figures, one file each in the gallery."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.checks import of_texts
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Files, Job, option, writes
from mamushi.stages._settings import Config, Settings, comparison, setting


def shown(
    config: Config,
    name: str,
    study: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    seed: int | None = None,
) -> Mapping[str, Any]:
    """Return the axes that a figure shows, with those of its selectors that are there for
    comparison alone, or its cell."""
    literals = plugin("figure", name).literals
    if literals["OF"] == "cell":
        ratio = {"selector": config["removal"]["ratio"]} if "scores" in literals["READS"] else {}
        return {"dataset": dataset, "model": model, "seed": seed, **ratio}
    found = grid.comparison(config, study)
    found = of_texts(config, found) if literals["OF"] == "evidence" else found
    names = found.get("selectors", ())
    return {**found, "compared": [name for name in names if comparison(config, name)]}


def drawing_code(stage: str, name: str) -> str:
    """Return the code of the stage and of the figure."""
    return digest(stage, plugin("figure", name).module)


class Figure(Settings):
    """What is drawn of which axes or cell."""

    name: str
    grid: dict[str, Any] = setting(shown)
    code: str = setting(drawing_code, default="")


class FigureFiles(Files):
    tables: Path = option("folder of the result tables")
    out: Path = writes("the PDF; a PNG goes beside it")


def figure(files: FigureFiles, settings: Figure, job: Job) -> None:
    """Draw one figure from the result tables, as PDF and PNG.

    Raises ``UserError`` for an unknown figure or a table without the grid's rows.
    """
    from matplotlib import rc_context

    from mamushi.figures.style import HOUSE, save
    from mamushi.registry import load

    module = load("figure", settings.name)
    with rc_context(HOUSE):
        save(module.draw(files.tables, settings.grid), files.out)
