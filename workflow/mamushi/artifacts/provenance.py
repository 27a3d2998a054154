"""What an artifact was made from: settings, digests of the inputs, versions. No times, so that the
same inputs give the same bytes."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mamushi import __version__
from mamushi.artifacts import digests

PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "tokenizers",
    "safetensors",
    "scikit-learn",
    "numpy",
    "pyarrow",
    "datasketch",
)


def versions() -> dict[str, str]:
    """Versions of Mamushi, Python and every package that can change a number."""
    found = {"mamushi": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def provenance(settings: Mapping[str, Any], **inputs: str | Path) -> dict[str, Any]:
    """``{"settings", "inputs": {name: sha256}, "versions"}`` for an artifact's card or metadata."""
    return {
        "settings": dict(settings),
        "inputs": {name: digests.of(path) for name, path in sorted(inputs.items())},
        "versions": versions(),
    }
