"""Tables of texts that nobody labelled."""

import json
from pathlib import Path


def write_texts(path: Path, rows: list[str], column: str = "body") -> str:
    """Write a JSON Lines file with a row per text; return its path."""
    path.write_text("".join(json.dumps({column: row}) + "\n" for row in rows), encoding="utf-8")
    return str(path)
