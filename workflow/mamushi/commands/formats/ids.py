"""plain text: an id a line, by rank, each with its copies after it"""

from __future__ import annotations

from pathlib import Path

from mamushi.commands._source import Source

FOLDER = False
TEXTS = False


def write(source: Source, out: Path) -> None:
    """Ids hold no line end: whoever reads a list of them splits it there."""
    with out.open("w", encoding="utf-8") as handle:
        for name in source.listed.ids:
            handle.write(f"{name}\n")
            for copy in source.listed.copies.get(name, []):
                handle.write(f"{copy}\n")
