"""A results folder with a removal list in it, and commands for people called by their functions."""

import argparse
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import sha256, write_json
from mamushi.artifacts.tables import write_table
from mamushi.selection.removals import digest

CELL = {"dataset": "comments", "model": "ours", "seed": 0}


def command(name: str, *words: object) -> int:
    """Run ``mamushi NAME WORDS``."""
    module = importlib.import_module(f"mamushi.commands.{name}")
    parser = argparse.ArgumentParser()
    module.arguments(parser)
    return module.run(parser.parse_args([str(word) for word in words])) or 0


def removal_list(
    root: Path,
    copies: Mapping[str, Sequence[str]],
    *,
    data: Path,
    text: str = "text",
    column: str | None = "id",
    cross_posts: Sequence[str] = (),
) -> Path:
    """A list with these ids, each with its copies, its manifest, and the dataset's files."""
    where: dict[str, Any] = {**CELL, "selector": "mamushi", "beta": "0.50"}
    path = paths.under(root, paths.REMOVAL, **where)
    ids = list(copies)
    columns = {
        "id": pa.array(ids, pa.string()),
        "score": [float(-i) for i in range(len(ids))],
        "rank": list(range(1, len(ids) + 1)),
        "copies": pa.array([list(each) for each in copies.values()], pa.list_(pa.string())),
    }
    write_table(path, schemas.REMOVALS, columns, metadata={})
    expected = {"removal": 1.5, "preservation": 0.25}
    manifest = {
        **CELL,
        "selector": "mamushi",
        "beta": 0.5,
        "removed": len(ids),
        "n_forget": 2 * len(ids),
        "n_retain": 9,
        "copies": sum(map(len, copies.values())),
        "cross_posts": len(cross_posts),
        "ids_sha256": digest(ids),
        "verdict": "act on it: strong separation, AUC 0.96 [0.94, 0.98]",
        "stability": {"expected_overlap": 0.9},
        "expected": {"unit": "nats", "withheld": None, "at_this_budget": expected},
        "provenance": {"versions": {"mamushi": "0.4.0"}, "inputs": {"examples": "0" * 64}},
    }
    write_json(path.with_suffix(".json"), manifest)
    gone = [(copy, kept) for kept, found in copies.items() for copy in found]
    duplicates = {
        "id": pa.array([copy for copy, _ in gone] + list(cross_posts), pa.string()),
        "kept_id": pa.array([kept for _, kept in gone] + [None] * len(cross_posts), pa.string()),
        "reason": pa.array(["exact"] * len(gone) + ["cross_post"] * len(cross_posts), pa.string()),
    }
    of = {"examples": "0" * 64}
    write_table(
        paths.under(root, paths.DUPLICATES, **where), schemas.DUPLICATES, duplicates, metadata=of
    )
    loader = {"path": str(data), "text": text, "id": column}
    files = sorted(data.rglob("*")) if data.is_dir() else [data]
    inputs = {file.name: sha256(file) for file in files if file.is_file()}
    card = {"settings": {"kind": "table", "loader": loader}, "inputs": inputs}
    write_json(paths.under(root, paths.DATA_CARD, **where), card)
    return path
