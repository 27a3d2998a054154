"""How fast GPUs are by rates.json, and what of that a fine-tune reaches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.errors import UserError
from mamushi.io import paths
from mamushi_runs.sizes import TABLE

GPUS: dict[str, dict[str, Any]] = TABLE["gpus"]
MEASURED = Path(paths.GPU_RATES)
"""What `make gpu-check` has measured, in the folder that has ``results``: of each GPU of the table,
the ``share`` of its peak that a fine-tune reaches, and when."""


class Rate(NamedTuple):
    """A GPU at work."""

    key: str
    flops: float
    """Per second, from the start to the end of a fine-tune."""
    source: str


def gpu_key(name: str) -> str | None:
    """Return the table's key for a GPU as SLURM, a vendor or a person calls it; None where it has
    none."""
    # The longest first: an L40S is no L4. No digit stands behind it: an h1000 is no h100.
    for key in sorted(GPUS, key=len, reverse=True):
        pattern = "[^a-z0-9]*".join(letter for letter in key if letter.isalnum())
        if re.search(rf"{pattern}(?!\d)", name.lower()):
            return key
    return None


def gpu_rate(name: str | None = None) -> Rate:
    """Return a GPU by its name, by default the paper's; raises ``UserError`` for one that the table
    does not have."""
    key = gpu_key(name or TABLE["default"])
    if key is None:
        do = f"known are {', '.join(GPUS)}"
        raise UserError(f"unknown GPU {name!r}", where="--gpu", do=do)
    share, reason = TABLE["share"], f"assumed: {TABLE['share_source']}"
    if MEASURED.is_file() and (entry := json.loads(MEASURED.read_text("utf-8")).get(key)):
        share, reason = float(entry["share"]), f"measured by make gpu-check on {entry['date']}"
    peak = GPUS[key]["tflops"]
    source = f"{GPUS[key]['name']} at {share:.1%} of {peak} TFLOP/s (data sheet), {reason}"
    return Rate(key, share * peak * 1e12, source)
