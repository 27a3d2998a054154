"""Figures, one file each in the gallery."""

from collections.abc import Mapping
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Config, Settings, setting
from mamushi.config.selectors import text_axes, why_baseline
from mamushi.registry import plugin
from mamushi.running.stage import Input, Job, Output


def axes_shown(
    config: Config,
    name: str,
    study: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    seed: int | None = None,
) -> Mapping[str, Any]:
    """Return the datasets, models, seeds and selectors that a figure shows, with ``compared``, the
    selectors that are only baselines. For a figure of one run, return its names instead."""
    of = plugin("figure", name).of
    if of == "cell":
        ratio = config["removal"]["ratio"]
        return {"dataset": dataset, "model": model, "seed": seed, "selector": ratio}
    axes = config["studies"][study] if study else config["grid"]
    if of == "unlearning":
        axes = grid.axes(config, "unlearning")
    elif of == "evidence":
        axes = text_axes(config, axes)
    compared = [selector for selector in axes["selectors"] if why_baseline(config, selector)]
    return {**axes, "compared": compared}


class Figure(Settings):
    """What is drawn of which axes or cell."""

    PLUGIN = ("figure", "name")
    name: str
    grid: dict[str, Any] = setting(axes_shown)


def figure(
    *,
    tables: list[Input] = (),  # type: ignore[assignment]
    out: Output,
    settings: Figure,
    job: Job,
) -> None:
    """Draw one figure from the tables that it reads, as PDF and, beside it, as PNG."""
    from matplotlib import rc_context

    from mamushi.figures.style import HOUSE, save

    with rc_context(HOUSE):
        save(plugin("figure", settings.name).code.draw(settings.grid, *tables), out)
