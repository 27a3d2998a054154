"""Raw texts in memory, and the stage `examples` on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mamushi import cli
from mamushi.data.raw import Raw
from mamushi.registry import plugin

DATA = {
    "split_seed": 0,
    "near_duplicates": 0.9,
    "shingle_words": 3,
    "max_characters": 1000,
}
PAPER = {"contamination": 0.4, "inference": 0.4, "evaluation": 0.2}
NO_LIMIT = {"forget": None, "retain": None}
UNUSED = Path("unused")


def raw_of(texts: list[str], forget: list[bool], **changes: Any) -> Raw:
    n = len(texts)
    columns: dict[str, Any] = {
        "ids": [f"id{i}" for i in range(n)],
        "texts": texts,
        "forget": np.array(forget),
        "section": [None] * n,
        "stratum": [""] * n,
        "places": [f"row {i + 1}" for i in range(n)],
    }
    return Raw(**columns | changes)


def stage_settings(kind: str, sections: dict[str, float], **loader: Any) -> dict[str, Any]:
    return {
        "dataset": "mine",
        "kind": kind,
        "loader": plugin("dataset", kind).defaults | loader,
        "sections": sections,
        "limit": NO_LIMIT,
        "drop_duplicates": True,
        "inputs": {},
        "data": DATA | {"max_characters": 1_000_000},
    }


def run(folder: Path, settings: dict[str, Any]) -> int:
    return cli.main(
        [
            "examples",
            *("--settings", json.dumps(settings)),
            *("--examples", str(folder / "out/examples.parquet")),
            *("--duplicates", str(folder / "out/duplicates.parquet")),
            *("--card", str(folder / "out/card.json")),
            *("--cache", str(folder / "cache")),
        ]
    )
