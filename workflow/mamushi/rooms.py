"""Rooms beside the core: what they add is found by folder, and the core runs without any.

A room is a folder of the package ``mamushi_extras``, in which its commands, stages, rules and
plug-ins lie as those of the core do. What it adds to the core's work is in its module ``adds``:
functions, each called at the point of its name. ``applies(settings)`` says of the settings of a
dataset's loader whether the room takes part in its data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "mamushi_extras"
POINTS = {
    # Of the configuration.
    "config_sections": "() -> {name: Section}: further sections",
    "dataset_keys": "() -> Section: further keys of a dataset",
    "config_checks": "(complete configuration) -> lines: mistakes in it",
    # Of the data, in this order.
    "read_rows": "(settings) -> Raw: read a table in place of the core",
    "divide_rows": "(Raw, settings) -> Raw: make several rows of one",
    "mark_rows": "(Raw, settings) -> Raw: say which rows are of the forget domain",
    "answer_rows": "(Raw, settings) -> Raw: the same, over all that was said before",
    "pool_step": "(Pool, metadata of the examples, column) -> Pool: add columns and steps to it",
    # Of models.
    "speed_up": "(model, accelerator, trains, lengths, job): make its passes faster",
    # Of commands.
    "removal_list": "(RemovalList) -> RemovalList: what a list means beside its ids",
    "describe_cell": "(manifest) -> {head: text}: lines of `mamushi show`",
    "export_formats": "() -> {format: (about it, write(list, out))}: of `mamushi export`",
    "cell_pages": "() -> patterns of paths: pages of a cell that `mamushi rank` makes",
    "start_page": "(results, configfiles, config) -> path or None: write a page after a run",
    "python_names": "() -> {name: module}: functions that Python users find in ``mamushi``",
}
"""Point -> signature of the functions that are called there, and what they do."""


@cache
def _modules() -> tuple[ModuleType, ...]:
    """Return the modules ``adds`` of all rooms, in the order of their names."""
    names = (path.parent.name for path in sorted(PACKAGE.glob("*/adds.py")))
    return tuple(importlib.import_module(f"{PACKAGE.name}.{name}.adds") for name in names)


def additions(
    point: str, settings: Mapping[str, Any] | None = None
) -> tuple[Callable[..., Any], ...]:
    """Return what the rooms add at a point; with ``settings`` of a dataset's loader, those rooms
    that take part in it."""
    assert point in POINTS, point
    modules = [module for module in _modules() if hasattr(module, point)]
    if settings is not None:
        modules = [module for module in modules if module.applies(settings)]
    return tuple(getattr(module, point) for module in modules)


def taking_part(*datasets: Mapping[str, Any]) -> list[str]:
    """Return the names of the modules of rooms that take part in any of some datasets: they belong
    to the code of what is made of these."""
    modules = [module for module in _modules() if hasattr(module, "applies")]
    return [m.__name__ for m in modules if any(m.applies(settings) for settings in datasets)]
