"""What this room adds to the core."""

from __future__ import annotations

from typing import Any

from mamushi_extras.influence.settings import Influenced, check_influence


def config_sections() -> dict[str, type[Any]]:
    """Return the further sections of the configuration."""
    return {"influence": Influenced}


config_checks = check_influence
