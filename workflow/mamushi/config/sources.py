"""What lies on the disk at the paths of a dataset or of vectors, to declare as inputs."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io import copies, tabular
from mamushi.registry import plugin

VECTOR_ENDINGS = (".parquet", ".pq", ".safetensors")
IDS = ".txt"
"""The ending of the file of ids beside a shard of safetensors."""


def unlabelled(dataset: Mapping[str, Any]) -> bool:
    """Return whether nobody marked the domain in a dataset: there are examples of it, or terms."""
    forget = dataset.get("forget")
    return isinstance(forget, Mapping) and bool({"like", "terms"} & forget.keys())


def files(dataset: Mapping[str, Any]) -> list[str]:
    """Return the raw files that a dataset names, there or not: in a folder as ``tabular.find``
    says, or those that the loader wants, plain or as .zip; of a URL the receipt of its copy. Raises
    ``UserError`` as ``tabular.find``."""
    loader, paths = plugin("dataset", dataset["kind"]), list[Path]()
    for key in (*loader.files, *loader.beside):
        value: Any = dataset
        for name in key.split("."):
            value = (value or {}).get(name)
        if names := value and loader.files.get(key):
            packed = {Path(value, name): Path(value, f"{name}.zip") for name in names}
            paths += [zipped if zipped.is_file() else plain for plain, zipped in packed.items()]
        elif copies.is_remote(value):
            paths.append(copies.receipt_path(value))
        elif value:
            is_one = not (os.path.isdir(value) or "*" in os.path.basename(value))
            paths += [Path(value)] if is_one else tabular.find(value)
    return list(map(str, paths))


def raw_size(dataset: Mapping[str, Any]) -> int:
    """Return the bytes of the raw files that are there, of a copy those beside its receipt."""
    every = [path for path in map(Path, files(dataset)) if path.is_file()]
    copied = [path.parent for path in every if path.name == copies.COPY_RECEIPT]
    every += [path for folder in copied for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in every)


def local_vectors(model: Mapping[str, Any]) -> list[Path]:
    """Return the files of a model's vectors as they lie here, one or those of a folder or pattern,
    by name; none where words make them."""
    if not (place := model["embeddings"]["path"]):
        return []
    path = copies.local_path(place)
    pattern = path / "*" if path.is_dir() else path
    shards = [file for file in pattern.parent.glob(pattern.name) if file.suffix in VECTOR_ENDINGS]
    return sorted(shards) or [pattern]


def vector_files(model: Mapping[str, Any]) -> list[str]:
    """Return the files of a model's vectors with those of their ids, of a URL the receipt of its
    copy."""
    if copies.is_remote(place := model["embeddings"]["path"]):
        return [str(copies.receipt_path(place))]
    shards = local_vectors(model)
    ids = [file.with_suffix(IDS) for file in shards if file.suffix == ".safetensors"]
    return list(map(str, [*shards, *filter(Path.is_file, ids)]))


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
