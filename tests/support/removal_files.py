"""A results folder with a removal list in it, and commands for people called by their functions."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.cli import run_command
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.digests import text_sha
from mamushi.io.domains import name_of
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.selection.removals import digest_of_ids
from mamushi_curate.tables import readers
from mamushi_extras.windows.windows import document_of, span_of
from tests.support.score_files import write_examples

CELL = {"dataset": "comments", "model": "ours", "seed": 0}


def command(name: str, *words: object) -> int:
    """Run ``mamushi NAME WORDS``."""
    return run_command(name, [str(word) for word in words])


def removal_list(
    root: Path,
    copies: Mapping[str, Sequence[str]],
    *,
    data: Path,
    text: str = "text",
    column: str | None = "id",
    windows: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
    part: str | None = None,
) -> Path:
    """A list with these ids, each with its copies, its manifest, and the dataset's files. Their
    texts are those of the table, or ``texts`` by id; of ``windows``, what stands there, and of
    conversations their ``part``."""
    where: dict[str, Any] = {**CELL, "selector": "mamushi", "beta": "0.50"}
    path = paths.under(root, paths.REMOVAL, **where)
    known = texts_of(data, column, text) if texts is None else texts
    if windows is not None:
        windows = {"words": 9, "labelled": True, **windows}
    names = (*copies, *(copy for several in copies.values() for copy in several))
    sums = {name: text_sha(known.get(name, "")) for name in names}
    if windows:
        cuts = {name: known[document_of(name)][slice(*span_of(name))] for name in names}
        sums = {name: text_sha(text) for name, text in cuts.items()}
    ids = list(copies)
    columns = {
        "id": pa.array(ids, pa.string()),
        "score": [float(-i) for i in range(len(ids))],
        "rank": list(range(1, len(ids) + 1)),
        "copies": pa.array([list(each) for each in copies.values()], pa.list_(pa.string())),
        "text_sha256": pa.array([sums[name] for name in ids], pa.string()),
        "copies_sha256": pa.array(
            [[sums[copy] for copy in several] for several in copies.values()],
            pa.list_(pa.string()),
        ),
    }
    kind = {"kind": "table", "column": column, "text": text, "windows": windows}
    kind |= {"part": part} if part else {}
    write_table(path, schemas.REMOVALS, columns, metadata={"rows": kind})
    write_json(path.with_suffix(".json"), manifest(copies))
    gone = [(copy, kept, "exact") for kept, several in copies.items() for copy in several]
    write_duplicates(root, [(*row, sums[row[0]]) for row in gone])
    write_examples(paths.under(root, paths.EXAMPLES, **where), ids, ["forget"] * len(ids))
    link(path)
    loader = {"path": str(data), "text": text, "id": column}
    files = sorted(data.rglob("*")) if data.is_dir() else [data]
    inputs = {file.name: sha256(file) for file in files if file.is_file()}
    examples = sha256(paths.under(root, paths.EXAMPLES, **where))
    settings = {"kind": "table", "loader": loader}
    card = {"settings": settings, "inputs": inputs, "examples": examples}
    write_json(paths.under(root, paths.DATA_CARD, **where), card)
    return path


def texts_of(data: Path, column: str | None, text: str) -> dict[str, str]:
    """The texts of a table by id."""
    try:
        table = readers.read_file_columns(data, [text, *([column] if column else [])])
    except UserError:
        # Of commands that read no table.
        return {}
    names = map(name_of, table.columns[column]) if column else map(str, count(1))
    pairs = zip(names, table.columns[text], strict=column is not None)
    return {str(name): str(value or "") for name, value in pairs}


def write_duplicates(root: Path, rows: Sequence[tuple[str, str | None, str, str]]) -> None:
    """The table of a dataset: id, what was kept for it, why, and the digest of its text."""
    schema = schemas.DUPLICATES.schema
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    table = {
        name: pa.array(list(column), pa.string())
        for name, column in zip(schema.names, columns, strict=True)
    }
    path = paths.under(root, paths.DUPLICATES, **CELL)
    write_table(path, schemas.DUPLICATES, table, metadata={"examples": "0" * 64})


def link(path: Path) -> Path:
    """Say in a list that it was made from the examples and duplicates that lie in its run."""
    where = paths.wildcards(paths.REMOVAL, path.absolute())
    assert where is not None
    files = {"examples": paths.EXAMPLES, "duplicates": paths.DUPLICATES}
    inputs = {name: sha256(paths.under(pattern=files[name], **where)) for name in files}
    about = read_metadata(path)
    about["provenance"] = {"inputs": {**about.get("provenance", {}).get("inputs", {}), **inputs}}
    write_table(path, schemas.REMOVALS, read_table(path, schemas.REMOVALS), metadata=about)
    card = paths.under(pattern=paths.DATA_CARD, **where)
    if card.is_file():
        write_json(card, {**read_json(card), "examples": inputs["examples"]})
    return path


def manifest(copies: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    expected = {"removal": 1.5, "preservation": 0.25}
    return {
        **CELL,
        "selector": "mamushi",
        "beta": 0.5,
        "removed": len(copies),
        "n_forget": 2 * len(copies),
        "n_retain": 9,
        "copies": sum(map(len, copies.values())),
        "cross_posts": 0,
        "ids_sha256": digest_of_ids(list(copies)),
        "verdict": "act on it: strong separation, AUC 0.96 [0.94, 0.98]",
        "stability": {"expected_overlap": 0.9},
        "expected": {"unit": "nats", "withheld": None, "at_this_budget": expected},
        "provenance": {"versions": {"mamushi": "0.4.0"}, "inputs": {"examples": "0" * 64}},
    }
