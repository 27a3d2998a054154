"""What lies on the disk at the paths of a dataset: its raw files, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.errors import COPY_RECEIPT, UserError
from mamushi.io import copies, tabular
from mamushi.registry import plugin

VECTOR_ENDINGS = (".parquet", ".pq", ".safetensors")
IDS = ".txt"
"""The ending of the file of ids beside a shard of safetensors, and the file beside shards that says
how their vectors were made."""


class RawPath(NamedTuple):
    """A key of a dataset that names raw files: which of them are there, what is missing."""

    key: str
    value: str
    files: list[Path]
    missing: str | None


def unlabelled(dataset: Mapping[str, Any]) -> bool:
    """Return whether nobody marked the domain in a dataset: there are examples of it, or terms."""
    forget = dataset.get("forget")
    return isinstance(forget, Mapping) and bool({"like", "terms"} & forget.keys())


def beside(dataset: Mapping[str, Any]) -> dict[str, str]:
    """Return the files beside the table of such a dataset, by their keys; none of others."""
    forget = dataset["forget"] if unlabelled(dataset) else {}
    return {key: forget[key] for key in ("like", "unlike", "terms", "screened") if key in forget}


def raw_paths(dataset: Mapping[str, Any]) -> Iterator[RawPath]:
    """Yield the keys that name raw files, as far as they have a value."""
    loader = plugin("dataset", dataset["kind"])
    for key, names in loader.files.items():
        if dataset[key] is not None:
            yield RawPath(key, dataset[key], *_look(dataset[key], names, loader.shards))
    if answers := dataset.get("answers"):
        yield RawPath("answers", answers, *_look(answers, [], sharded=False))
    for key, value in beside(dataset).items():
        yield RawPath(f"forget.{key}", value, *_look(value, [], key not in ("terms", "screened")))


def _look(value: str, names: list[str], sharded: object) -> tuple[list[Path], str | None]:
    """Return the raw files at a path, a folder with the files ``names`` or, without names, a file
    or where the loader takes one a folder of shards; and what is missing, if anything. What lies at
    a URL stands for itself by the receipt of its copy, which may not be there yet."""
    if copies.is_remote(value) and not names:
        return [copies.receipt_path(value)], None
    path = Path(value)
    if sharded and (path.is_dir() or "*" in path.name):
        try:
            return tabular.find(path), None
        except UserError as error:
            return [], f"{error.problem}; {error.do}"
    if not names:
        return ([path], None) if path.is_file() else ([], tabular.no_file(path))
    means = f"it names a folder with {', '.join(names)} (each plain or as .zip)"
    if not path.is_dir():
        return [], f"no such folder; {means}"
    files, lacks = [], []
    for name in names:
        choices = [choice for choice in (path / name, path / f"{name}.zip") if choice.is_file()]
        files += choices[:1]
        lacks += [] if choices else [name]
    return files, f"{', '.join(lacks)} not there; {means}" if lacks else None


def files(dataset: Mapping[str, Any]) -> list[str]:
    """Return the raw files of a completed dataset, to declare as inputs; none without a path."""
    return [str(path) for raw in raw_paths(dataset) for path in raw.files]


def vector_shards(path: str | Path) -> list[Path]:
    """Return the files of vectors that a path names: one, or those of a folder or a pattern, by
    name."""
    path = Path(path)
    if path.is_dir() or "*" in path.name:
        every = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
        return sorted(file for file in every if file.suffix in VECTOR_ENDINGS)
    return [path]


def local_vectors(model: Mapping[str, Any]) -> list[Path]:
    """Return the files of a model's vectors as they lie here; none where words make them."""
    path = model["embeddings"]["path"]
    return vector_shards(copies.local_path(path)) if path else []


def vector_files(model: Mapping[str, Any]) -> list[str]:
    """Return the files of vectors that another program made, to declare as inputs: with those of
    shards their ids."""
    path = model["embeddings"]["path"]
    if not path or copies.is_remote(path):
        return [str(copies.receipt_path(path))] if path else []
    every = vector_shards(path)
    ids = [file.with_suffix(IDS) for file in every if file.suffix == ".safetensors"]
    return [*map(str, every), *(str(file) for file in ids if file.is_file())]


def raw_size(dataset: Mapping[str, Any]) -> int:
    """Return the bytes of the raw files that are there."""
    size = 0
    for path in map(Path, files(dataset)):
        for file in path.parent.rglob("*") if path.name == COPY_RECEIPT else [path]:
            size += file.stat().st_size if file.is_file() else 0
    return size


def fetched_urls(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the URLs of data in a configuration by the receipts of their copies, each as it stands
    there, perhaps with a signature. Raises ``UserError`` as ``copies.unsigned``."""
    models = config.get("models")
    vectors = [model.get("embeddings") for model in models.values()] if models else []
    every = map(os.path.expandvars, copies.urls([config.get("datasets"), vectors]))
    return {str(copies.receipt_path(copies.unsigned(url))): url for url in every}
