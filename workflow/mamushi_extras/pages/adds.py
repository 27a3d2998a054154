"""What this room adds to the core."""

from collections.abc import Sequence
from pathlib import Path


def start_page(root: Path, configfiles: Sequence[str] = ()) -> Path | None:
    """Write the start page of a results folder, see ``start.write_start_page``."""
    from mamushi_extras.pages.start import write_start_page

    return write_start_page(root, configfiles)
