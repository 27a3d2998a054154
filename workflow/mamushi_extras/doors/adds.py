"""What this room adds to the core: a ranking as a file that scores other texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def export_formats() -> dict[str, tuple[str, Callable[[Path, Path], None]]]:
    """Return the format in which a ranking is handed over."""
    return {"scorer": ("of a list: what ranked it, fitted to all texts, for mamushi score", _write)}


def _write(listed: Path, out: Path) -> None:
    from mamushi_extras.doors.saving import write_scorer

    write_scorer(listed, out)
