"""What this room adds to the core."""

from __future__ import annotations

from typing import Any

from mamushi_extras.left.settings import Left, Tasks


def config_sections() -> dict[str, type[Any]]:
    """Return the further sections of the configuration."""
    return {"left": Left, "tasks": Tasks}
