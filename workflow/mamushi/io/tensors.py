"""What a file of trained tensors was made from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from mamushi.io.files import reading


def header(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return ``metadata`` (JSON) as safetensors stores it, in one key: it writes several in an
    order that changes from run to run."""
    return {"mamushi": json.dumps(metadata, sort_keys=True)}


def trained_metadata(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a file of trained tensors. Raises ``UserError`` when it is missing or
    damaged."""
    with reading(path), safe_open(path, "np") as file:
        return dict(json.loads((file.metadata() or {})["mamushi"]))
