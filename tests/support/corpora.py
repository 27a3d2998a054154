"""Tables of texts that nobody labelled."""

import json
import random
from pathlib import Path
from typing import Any


def write_texts(path: Path, rows: list[str], column: str = "body") -> str:
    """Write a JSON Lines file with a row per text; return its path."""
    path.write_text("".join(json.dumps({column: row}) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def screened_corpus(folder: Path) -> dict[str, Any]:
    """Write a corpus of four files, and return a configuration that screens it."""
    rng = random.Random(0)

    def texts(n: int, share: float) -> list[str]:
        return [
            " ".join(
                f"{'own' if rng.random() < share else 'word'}{rng.randrange(60)}" for _ in range(30)
            )
            for _ in range(n)
        ]

    (folder / "texts").mkdir(parents=True)
    for number in range(4):
        rows = [*texts(60, 0.02), *texts(15, 0.3)]
        write_texts(folder / "texts" / f"{number}.jsonl", [*rows, *rows[:2]])
    like = write_texts(folder / "like.jsonl", texts(60, 0.3))
    source = {"kind": "table", "path": str(folder / "texts"), "text": "body"}
    forget = {"like": like, "screen": 0.3}
    return {
        "grid": {"datasets": ["corpus"], "models": ["words"], "selectors": ["lexical"]},
        "datasets": {"corpus": {**source, "forget": forget, "sections": {"inference": 1}}},
        "models": {"words": {"embeddings": {"words": 16}}},
    }
