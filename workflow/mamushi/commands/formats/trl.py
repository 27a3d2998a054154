"""JSON Lines for TRL's SFTTrainer: what is not on the list, as text, or prompt and completion"""

from __future__ import annotations

from pathlib import Path

from mamushi.commands._source import Source, json_line

FOLDER = False
TEXTS = True


def write(source: Source, out: Path) -> None:
    """With weights all rows: 0 for what is on the list, which a loss of one's own may read."""
    with out.open("w", encoding="utf-8") as handle:
        for row in source.rows():
            cells = source.trained(row, text="completion" if source.prompted else "text")
            if cells is not None:
                handle.write(json_line(cells))
