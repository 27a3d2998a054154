"""What a file of trained tensors was made from, read without the libraries that open tensors."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io import seal

HEADER_LENGTH = struct.Struct("<Q")
"""How a safetensors file begins: with the length of the JSON that follows."""


def header(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return ``metadata`` (JSON) as safetensors stores it, with a slot for the seal.

    One key: safetensors writes several in an order that changes from run to run.
    """
    return {"mamushi": json.dumps({**metadata, "checksum": seal.SLOT}, sort_keys=True)}


def trained_metadata(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a file of trained tensors. Raises ``UserError`` when it is missing or
    damaged."""
    data = seal.opened(path)
    (length,) = HEADER_LENGTH.unpack_from(data)
    header = json.loads(data[HEADER_LENGTH.size : HEADER_LENGTH.size + length])
    stored = json.loads(header["__metadata__"]["mamushi"])
    return {name: value for name, value in stored.items() if name != "checksum"}


def drop_others(card: Path, made_from: Mapping[str, Any]) -> None:
    """Delete the tensors beside a card to be written, unless they were made from the same.

    They are an earlier run's, which was asked to keep them, and would pass for the card's.
    """
    tensors = card.with_name("trained.safetensors")
    with contextlib.suppress(UserError):
        if trained_metadata(tensors) == json.loads(json.dumps(made_from)):
            return
    tensors.unlink(missing_ok=True)
