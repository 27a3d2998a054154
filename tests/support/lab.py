"""A lab's own case: a table of two kinds of text, and a tiny model of them."""

import csv
import random
from pathlib import Path

from mamushi.lm import tiny

SHAPE = {
    **{"family": "qwen2", "hidden_size": 16, "layers": 3, "heads": 2, "key_value_heads": 1},
    **{"intermediate_size": 32, "vocabulary_size": 400, "max_positions": 300},
}
WORDS = {
    "ours": ["the", "a", "of", "river", "stone", "water", "bridge", "boat", "shore"],
    "theirs": ["the", "a", "of", "engine", "wheel", "brake", "gear", "clutch", "road"],
}


def write_lab(folder: Path) -> list[tuple[str, str, str]]:
    """Write ``comments.csv`` (id, body, source), whose rows are returned, and the model ``ours``
    into the folder."""
    rng = random.Random(0)
    rows = [
        (f"c{i}", " ".join(rng.choices(WORDS[source], k=15)), source)
        for i, source in enumerate(rng.choices(["ours", "theirs"], k=160))
    ]
    with (folder / "comments.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("id", "body", "source"), *rows])
    model, tokenizer = tiny.build(SHAPE, [text for _, text, _ in rows], seed=0)
    model.save_pretrained(folder / "ours")
    tokenizer.save_pretrained(folder / "ours")
    return rows
