"""What is known beforehand, in rates.json: how fast a GPU is, what of that a fine-tune reaches, how
fast a processor is, and the sizes of public models and datasets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from mamushi.errors import UserError

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("rates.json").read_text("utf-8"))
GPUS: dict[str, dict[str, Any]] = TABLE["gpus"]
CPU: dict[str, Any] = TABLE["cpu"]


MEASURED = Path(paths.GPU_RATES)
"""What `make gpu-check` has measured, in the folder that has ``results``: of each GPU of the table,
the ``share`` of its peak that a fine-tune reaches, and when."""


@dataclass(frozen=True)
class Rate:
    """A GPU at work."""

    key: str
    name: str
    flops: float
    """Per second, from the start to the end of a fine-tune."""
    source: str
    """What they are from, for people."""


def known(name: str) -> str | None:
    """Return the table's key for a GPU as SLURM, a vendor or a person calls it; None where it has
    none."""

    def letters(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    # The longest first: an L40S is no L4.
    keys = sorted(GPUS, key=len, reverse=True)
    return next((key for key in keys if letters(key) in letters(name)), None)


def rate(name: str | None = None, share: float | None = None) -> Rate:
    """Return a GPU by its name, by default the paper's; ``share`` in place of the one that was
    measured here, or of the table's.

    Raises ``UserError`` for a GPU that the table does not have, and a share outside (0, 1].
    """
    key = known(name or TABLE["default"])
    if key is None:
        names = ", ".join(GPUS)
        raise UserError(f"unknown GPU {name!r}", where="--gpu", do=f"known are {names}")
    if share is not None and not 0 < share <= 1:
        raise UserError(f"{share:g} is no share of a peak", where="--share", do="give 0.01 to 1")
    peak, name = GPUS[key]["tflops"], GPUS[key]["name"]
    own = measured().get(key, {})
    part = share or own.get("share") or TABLE["share"]
    if share:
        why = "as you say"
    elif own.get("share"):
        why = f"measured by make gpu-check on {own['date']}"
    else:
        why = f"assumed: {TABLE['share_source']}"
    source = f"{name} at {part:.1%} of {peak} TFLOP/s (data sheet), {why}"
    return Rate(key, name, part * peak * 1e12, source)


def measured() -> dict[str, dict[str, Any]]:
    """Return the shares that were measured here, by GPU; none without a file that can be read."""
    try:
        found = json.loads(MEASURED.read_text(encoding="utf-8"))
        return {
            key: {"share": float(r["share"]), "date": str(r["date"])} for key, r in found.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
