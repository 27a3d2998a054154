"""Figures, one file each in the gallery."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Config, Settings, setting
from mamushi.config.selectors import comparison, of_texts
from mamushi.registry import plugin
from mamushi.running.stage import Job, Output


def axes_shown(
    config: Config,
    name: str,
    study: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    seed: int | None = None,
) -> Mapping[str, Any]:
    """Return the axes that a figure shows, with those of its selectors that are there for
    comparison alone, or its cell."""
    drawing = plugin("figure", name)
    if drawing.of == "cell":
        ratio = {"selector": config["removal"]["ratio"]} if "scores" in drawing.reads else {}
        return {"dataset": dataset, "model": model, "seed": seed, **ratio}
    if drawing.of == "unlearning":
        axes = grid.axes(config, "unlearning")
    else:
        axes = config["studies"][study] if study else config["grid"]
        axes = of_texts(config, axes) if drawing.of == "evidence" else axes
    names = axes.get("selectors", ())
    return {**axes, "compared": [name for name in names if comparison(config, name)]}


class Figure(Settings):
    """What is drawn of which axes or cell."""

    PLUGIN = ("figure", "name")
    name: str
    grid: dict[str, Any] = setting(axes_shown)


def figure(*, tables: Path, out: Output, settings: Figure, job: Job) -> None:
    """Draw one figure from the result tables in a folder, as PDF and, beside it, as PNG."""
    from matplotlib import rc_context

    from mamushi.figures.style import HOUSE, save

    with rc_context(HOUSE):
        save(plugin("figure", settings.name).code.draw(tables, settings.grid), out)
