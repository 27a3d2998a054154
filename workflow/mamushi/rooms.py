"""Rooms beside the core: what they add is found by folder, and the core runs without any.

A room is a folder of the package ``mamushi_extras``, in which its commands, stages, rules and
plug-ins lie as those of the core do. What it adds to the core's work is in its module ``adds``:
functions, each called at the point of its name (see ``docs/guide/adding.md``).
``applies(settings)`` says of the settings of a dataset's loader whether the room takes part in its
data.
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


def additions(point: str, settings: Mapping[str, Any] | None = None) -> list[Any]:
    """Return what the rooms add at a point; with ``settings`` of a dataset's loader, those rooms
    that take part in it."""
    modules = [module for module in _modules() if hasattr(module, point)]
    return [getattr(m, point) for m in modules if settings is None or m.applies(settings)]


def taking_part(*datasets: Mapping[str, Any]) -> list[str]:
    """Return the names of the modules of rooms that take part in any of some datasets: they belong
    to the code of what is made of these."""
    modules = [module for module in _modules() if hasattr(module, "applies")]
    return [m.__name__ for m in modules if any(m.applies(settings) for settings in datasets)]
