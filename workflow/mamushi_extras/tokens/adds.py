"""What this room adds to the core: spans of tokens, in the format that trainers read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mamushi_extras.tokens.settings import check_tokens
from mamushi_extras.tokens.token_labels import write_labels


def export_formats() -> dict[str, tuple[str, Callable[[Path, Path], None]]]:
    """Return the format in which spans are handed over."""
    labels = (
        "of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token is "
        "masked, as TRL and axolotl read tokenized texts"
    )
    return {"labels": (labels, write_labels)}


config_checks = check_tokens
