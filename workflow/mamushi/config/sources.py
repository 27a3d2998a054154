"""What lies on the disk at a path of the configuration: raw files of datasets, models' folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.errors import UserError
from mamushi.io import digests, tabular
from mamushi.registry import plugin

GGUF_VERSIONS = (2, 3)
"""Those that the package gguf reads."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of weights that are not opened."""
MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""


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
    return {key: forget[key] for key in ("like", "unlike", "terms") if key in forget}


def raw_paths(dataset: Mapping[str, Any]) -> Iterator[RawPath]:
    """Yield the keys that name raw files, as far as they have a value."""
    loader = plugin("dataset", dataset["kind"])
    for key, names in loader.files.items():
        if dataset[key] is not None:
            yield RawPath(key, dataset[key], *_look(dataset[key], names, loader.shards))
    if answers := dataset.get("answers"):
        yield RawPath("answers", answers, *_look(answers, [], sharded=False))
    for key, value in beside(dataset).items():
        yield RawPath(f"forget.{key}", value, *_look(value, [], key != "terms"))


def _look(value: str, names: list[str], sharded: object) -> tuple[list[Path], str | None]:
    """Return the raw files at a path, a folder with the files ``names`` or, without names, a file
    or where the loader takes one a folder of shards; and what is missing, if anything."""
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


def contents(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 by name of files that come from outside, so that another one runs again
    what reads it, whatever its date; a dry run does without those that are not there yet."""
    return {os.path.basename(path): digests.of(path) for path in paths if os.path.isfile(path)}


def is_gguf(model: Mapping[str, Any]) -> bool:
    """Return whether a model's source is a GGUF file, going by its name."""
    return str(model.get("source") or "").lower().endswith(".gguf")


def source_mistake(source: str) -> str | None:
    """Return what tells at a glance that a GGUF file or a folder holds no model to be opened."""
    path = Path(source)
    if is_gguf({"source": source}):
        return _no_gguf(path)
    return _no_folder(path) if path.is_dir() else None


def _no_folder(path: Path) -> str | None:
    names = [file.name for file in path.iterdir()]
    if "config.json" not in names:
        if "adapter_config.json" in names:
            error = "this folder holds adapters (LoRA), and not the model that they belong to"
            return f"{error}; merge them into it (merge_and_unload), and give what that saves"
        return "this folder holds no model (no config.json); give what save_pretrained wrote"
    pickled = [name for name in names if name.endswith(PICKLES)]
    if pickled and not any(name.endswith(".safetensors") for name in names):
        return (
            f"its weights are pickle files ({pickled[0]}), which can run code when they are "
            "opened; save it as safetensors, as save_pretrained does"
        )
    return None


def _no_gguf(path: Path) -> str | None:
    """Return what tells a file from a GGUF file, by its first 8 bytes."""
    if not path.is_file():
        return tabular.no_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        return str(error.strerror)
    if len(head) < 8 or head[:4] != b"GGUF":
        return "it does not start as a GGUF file does; download it again"
    version = int.from_bytes(head[4:], "little")
    if version not in GGUF_VERSIONS:
        readable = " and ".join(map(str, GGUF_VERSIONS))
        return f"its GGUF version, {version}, cannot be read; {readable} can"
    return None
