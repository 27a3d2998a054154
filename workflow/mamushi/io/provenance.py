"""The one identity of a result: settings, digests of the inputs, versions. No times, so that the
same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mamushi import __version__
from mamushi.io import digests

PACKAGES = (
    *("torch", "transformers", "accelerate", "tokenizers", "safetensors"),
    *("scikit-learn", "numpy", "pyarrow"),
)


def versions() -> dict[str, str]:
    """Return versions of Mamushi, Python and every package that can change a number."""
    packages = {package: version(package) for package in PACKAGES}
    return {"mamushi": __version__, "python": platform.python_version(), **packages}


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
