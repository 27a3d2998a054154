"""How fast a named GPU is, and what of that a fine-tune reaches: the table in rates.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mamushi.errors import UserError

TABLE = Path(__file__).with_name("rates.json")


@dataclass(frozen=True)
class Rate:
    """A GPU at work."""

    key: str
    name: str
    peak: float
    """FLOP/s, dense bf16."""
    bandwidth: float
    """Bytes per second."""
    memory: float
    """Bytes."""
    share: float
    """Of the peak, from the start to the end of a fine-tune."""
    padded: bool
    """Whether ``share`` counts texts as long as they are padded to."""

    def __str__(self) -> str:
        tokens = "padded" if self.padded else "real"
        peak = f"{self.peak / 1e12:,.0f} TFLOP/s"
        return f"{self.name} at {self.share:.1%} of {peak}, {tokens} tokens"


@cache
def table() -> dict[str, Any]:
    """What rates.json holds."""
    read: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return read


def known(name: str) -> str | None:
    """The table's key for a GPU as SLURM, a vendor or a person calls it; None where it has none."""

    def letters(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    # The longest first: an L40S is no L4.
    keys = sorted(table()["gpus"], key=len, reverse=True)
    return next((key for key in keys if letters(key) in letters(name)), None)


def rate(name: str | None = None, share: float | None = None, padded: bool | None = None) -> Rate:
    """A GPU by its name, by default the paper's; ``share`` and ``padded`` in place of the table's.

    Raises ``UserError`` for a GPU that the table does not have, and a share outside (0, 1].
    """
    key = known(name or table()["default"])
    if key is None:
        names = ", ".join(table()["gpus"])
        raise UserError(f"unknown GPU {name!r}", where="--gpu", do=f"known are {names}")
    if share is not None and not 0 < share <= 1:
        raise UserError(f"{share:g} is no share of a peak", where="--share", do="give 0.01 to 1")
    entry = table()["gpus"][key]
    return Rate(
        key=key,
        name=entry["name"],
        peak=entry["tflops"] * 1e12,
        bandwidth=entry["bandwidth"] * 1e12,
        memory=entry["memory"] * 1e9,
        share=table()["share"] if share is None else share,
        padded=table()["padded"] if padded is None else padded,
    )
