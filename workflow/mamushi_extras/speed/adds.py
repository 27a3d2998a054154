"""What this room adds to the core."""

from typing import Any


def join_passes(**opened: Any) -> None:
    """Let a model that is unlearned start from what its frozen blocks made of the texts."""
    from mamushi_extras.speed.trunk import start_from_trunk

    if opened["trains"]:
        start_from_trunk(**opened)
