"""Rooms beside the core: what they add is found by folder, and the core runs without any.

A room is a folder of the package ``mamushi_extras``. Its module ``adds``, if there is one, has
functions that the core calls at the point of their name; ``POINTS`` has all points.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "mamushi_extras"
POINTS = {
    "start_page": "(results, configfiles, config) -> path or None: write a page after a run",
    "python_names": "() -> {name: module}: functions that Python users find in ``mamushi``",
}
"""Point -> signature of the functions that are called there, and what they do."""


@cache
def additions(point: str) -> tuple[Callable[..., Any], ...]:
    """Return what the rooms add at a point, in the order of their names."""
    assert point in POINTS, point
    modules = (
        importlib.import_module(f"{PACKAGE.name}.{path.parent.name}.adds")
        for path in sorted(PACKAGE.glob("*/adds.py"))
    )
    return tuple(getattr(module, point) for module in modules if hasattr(module, point))
