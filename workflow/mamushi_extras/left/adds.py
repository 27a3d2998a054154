"""What this room adds to the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def config_sections() -> dict[str, type[Any]]:
    """Return the further sections of the configuration."""
    from mamushi_extras.left.settings import Left

    return {"left": Left}


def dataset_keys() -> type[Any]:
    """Return the further keys of a dataset."""
    from mamushi_extras.left.settings import PlantedKey

    return PlantedKey


def config_checks(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes in a complete configuration."""
    from mamushi_extras.left.settings import check_planted

    yield from check_planted(full)
