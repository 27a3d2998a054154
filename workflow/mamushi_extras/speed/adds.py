"""What this room adds to the core."""

from typing import Any


def speed_up(**arm: Any) -> None:
    """Let a model start from what its frozen blocks made of the texts."""
    from mamushi_extras.speed.trunk import start_from_trunk

    start_from_trunk(**arm)
