"""The one identity of a result: settings, digests of the inputs, versions. No times, so that the
same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mamushi import __version__
from mamushi.io import digests
from mamushi.io.files import read_json

PACKAGES = (
    *("torch", "transformers", "accelerate", "tokenizers", "safetensors"),
    *("scikit-learn", "numpy", "pyarrow"),
)


def versions() -> dict[str, str]:
    """Return versions of Mamushi, Python and every package that can change a number."""
    numbers = {"mamushi": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    return numbers


def provenance(settings: Mapping[str, Any], **inputs: str | Path) -> dict[str, Any]:
    """Return ``{"settings", "inputs": {name: sha256}, "versions"}`` for an artifact's card or
    metadata."""
    return {
        "settings": dict(settings),
        "inputs": {name: digests.of(path) for name, path in sorted(inputs.items())},
        "versions": versions(),
    }


def fingerprint(origin: Mapping[str, Any]) -> str:
    """Return the identity as a name: SHA-256 of its canonical JSON."""
    return hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()


def recorded(path: Path) -> dict[str, Any] | None:
    """Return what the artifact at ``path`` was made from by its own record, None without one.

    A model's folder says what its card says, where that is of the files beside it. Raises
    ``UserError``, ``OSError`` or ``ValueError`` for a file that is missing or damaged.
    """
    if path.is_dir():
        path = path / "card.json"
        listed = dict(read_json(path)["digests"])
        if any(digests.of(path.with_name(name)) != record for name, record in listed.items()):
            return None
    if path.suffix == ".parquet":
        from mamushi.io.tables import read_metadata

        stored = read_metadata(path)
    elif path.suffix == ".safetensors":
        from mamushi.io.tensors import trained_metadata

        stored = trained_metadata(path)
    elif path.suffix == ".json":
        stored = read_json(path)
    else:
        return None
    record = stored.get("provenance", stored)
    names = ("settings", "inputs", "versions")
    return {name: record[name] for name in names} if record.keys() >= set(names) else None
