"""What this room adds to the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def config_sections() -> dict[str, type[Any]]:
    """Return the further sections of the configuration."""
    from mamushi_extras.influence.settings import Influenced

    return {"influence": Influenced}


def config_checks(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes in a complete configuration."""
    from mamushi_extras.influence.settings import check_influence

    yield from check_influence(full)
