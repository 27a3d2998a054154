"""What this room adds to the core: spans of tokens, in the formats that trainers read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def export_formats() -> dict[str, tuple[str, Callable[[Path, Path], None]]]:
    """Return the formats in which spans are handed over."""
    labels = (
        "of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token is "
    )
    labels += "masked, as TRL and axolotl read tokenized texts"
    cut = "of spans: JSON Lines with what is left of the texts, for trainers without labels: the "
    cut += "model does not see what is masked, and nothing of that was measured"
    return {"labels": (labels, _write_labels), "cut": (cut, _write_cut)}


def _write_labels(spans: Path, out: Path) -> None:
    from mamushi_extras.tokens.token_labels import write_labels

    write_labels(spans, out)


def _write_cut(spans: Path, out: Path) -> None:
    from mamushi_extras.tokens.token_labels import write_labels

    write_labels(spans, out, cut=True)
