"""What lies on the disk at the paths of a dataset: its raw files, and what is missing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io import copies, tabular
from mamushi.registry import plugin

VECTOR_ENDINGS = (".parquet", ".pq", ".safetensors")
IDS = ".txt"
"""The ending of the file of ids beside a shard of safetensors, and the file beside shards that says
how their vectors were made."""


def unlabelled(dataset: Mapping[str, Any]) -> bool:
    """Return whether nobody marked the domain in a dataset: there are examples of it, or terms."""
    forget = dataset.get("forget")
    return isinstance(forget, Mapping) and bool({"like", "terms"} & forget.keys())


def raw_paths(dataset: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Return the files of each key of a dataset that names raw files, there or not: in a folder as
    ``tabular.find`` says, or those that the loader wants, plain or as .zip. What lies at a URL
    stands for itself by the receipt of its copy. Raises ``UserError`` as ``tabular.find``."""
    loader = plugin("dataset", dataset["kind"])
    values = {key: _value(dataset, key) for key in (*loader.files, *loader.beside)}
    return {key: _files(value, loader.files.get(key)) for key, value in values.items() if value}


def _value(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = (values or {}).get(name)
    return values


def _files(value: str, names: list[str] | None) -> list[Path]:
    path = Path(value)
    if names:
        packed = {path / name: path / f"{name}.zip" for name in names}
        return [packed[plain] if packed[plain].is_file() else plain for plain in packed]
    if copies.is_remote(value):
        return [copies.receipt_path(value)]
    return tabular.find(path) if path.is_dir() or "*" in path.name else [path]


def files(dataset: Mapping[str, Any]) -> list[str]:
    """Return the raw files of a completed dataset, to declare as inputs; none without a path."""
    return [str(path) for paths in raw_paths(dataset).values() for path in paths]


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
    """Return the bytes of the raw files that are there, of a copy those beside its receipt."""
    files = [path for paths in raw_paths(dataset).values() for path in paths if path.is_file()]
    copied = [path.parent for path in files if path.name == copies.COPY_RECEIPT]
    every = [*files, *(file for folder in copied for file in folder.rglob("*"))]
    return sum(file.stat().st_size for file in every if file.is_file())


def fetched_urls(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the URLs of data in a configuration by the receipts of their copies, each as it stands
    there, perhaps with a signature. Raises ``UserError`` as ``copies.unsigned``."""
    models = config.get("models") or {}
    vectors = [model.get("embeddings") for model in models.values()]
    every = map(os.path.expandvars, copies.urls([config.get("datasets"), vectors]))
    return {str(copies.receipt_path(copies.unsigned(url))): url for url in every}


def require_copies(config: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for the first URL of a configuration without a copy here."""
    for receipt, url in fetched_urls(config).items():
        if not os.path.exists(receipt):
            do = "mamushi check and mamushi run fetch it"
            raise UserError("is not fetched", where=copies.display_url(url), do=do)
