"""Rooms beside the core: what they add is found by folder, and the core runs without any.

A room is a folder of the package ``mamushi_extras``, in which its commands, stages, rules and
plug-ins lie as those of the core do. Its module ``adds`` may have these, each called at its point:

``config``: keys of the configuration and a check of it, a ``config.kinds.Added``.
``rows(settings)``: the steps that a room takes in reading a table with these settings, by name:
``read(settings)``, then ``divide``, ``mark`` and ``answer(raw, settings)``; none for other tables.
``pool_step(pool, metadata, column)``: the pool that is ranked, with what the room knows of it.
``removal_list(listed)``: a removal list as it is to be applied.
``start_page(root, configfiles)``: writes the page of a results folder, and returns its file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "mamushi_extras"


@cache
def _modules() -> tuple[ModuleType, ...]:
    """Return the modules ``adds`` of all rooms, in the order of their names."""
    names = (path.parent.name for path in sorted(PACKAGE.glob("*/adds.py")))
    return tuple(importlib.import_module(f"{PACKAGE.name}.{name}.adds") for name in names)


def additions(point: str) -> list[Any]:
    """Return what the rooms add at a point."""
    return [getattr(module, point) for module in _modules() if hasattr(module, point)]


def readers_of(*datasets: Mapping[str, Any]) -> list[str]:
    """Return the names of the modules of rooms that take a step in reading any of some datasets:
    they belong to the code of what is made of these."""
    modules = [module for module in _modules() if hasattr(module, "rows")]
    return [module.__name__ for module in modules if any(map(module.rows, datasets))]
