"""What the stages that collect measurements in result tables have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.stage import root, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    """The folder in which they find what was measured, and where the tables go."""

    root: Path = root()
    out_folder: Path = writes("where to write the tables")
