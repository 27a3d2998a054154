"""What this room adds to the core: spans of tokens, in the format that trainers read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


def export_formats() -> dict[str, tuple[str, Callable[[Path, Path], None]]]:
    """Return the format in which spans are handed over."""
    labels = (
        "of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token is "
        "masked, as TRL and axolotl read tokenized texts"
    )
    return {"labels": (labels, _write_labels)}


def _write_labels(spans: Path, out: Path) -> None:
    from mamushi_extras.tokens.token_labels import write_labels

    write_labels(spans, out)


def config_checks(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes in a complete configuration."""
    from mamushi_extras.tokens.settings import check_tokens

    yield from check_tokens(full)
