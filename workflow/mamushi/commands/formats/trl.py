"""JSON Lines for TRL's SFTTrainer: what is not on the list, as text, or prompt and completion"""

from __future__ import annotations

from pathlib import Path

from mamushi.commands._source import Source

FOLDER = False
TEXTS = True


def write(source: Source, out: Path) -> None:
    """Write all rows with weights: 0 for what is on the list, for a loss of one's own."""
    source.write_trained(out, "completion" if source.prompted else "text")
