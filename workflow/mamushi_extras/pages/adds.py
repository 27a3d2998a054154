"""What this room adds to the core."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def start_page(
    root: Path, configfiles: Sequence[str] = (), config: Mapping[str, Any] | None = None
) -> Path | None:
    """Write the start page of a results folder, see ``start.write_start_page``."""
    from mamushi_extras.pages.start import write_start_page

    return write_start_page(root, configfiles)
