"""What a file of trained tensors was made from."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from mamushi.errors import UserError
from mamushi.io.files import reading


def header(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return ``metadata`` (JSON) as safetensors stores it.

    One key: safetensors writes several in an order that changes from run to run.
    """
    return {"mamushi": json.dumps(metadata, sort_keys=True)}


def trained_metadata(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a file of trained tensors. Raises ``UserError`` when it is missing or
    damaged."""
    with reading(path), safe_open(path, "np") as file:
        return dict(json.loads((file.metadata() or {})["mamushi"]))


def drop_others(card: Path, made_from: Mapping[str, Any]) -> None:
    """Delete the tensors beside a card to be written, unless they were made from the same.

    They are an earlier run's, which was asked to keep them, and would pass for the card's.
    """
    tensors = card.with_name("trained.safetensors")
    with contextlib.suppress(UserError):
        if trained_metadata(tensors) == json.loads(json.dumps(made_from)):
            return
    tensors.unlink(missing_ok=True)
