"""results.json for trackers: what the list was made with, and its numbers, flat"""

from __future__ import annotations

from pathlib import Path

from mamushi.artifacts.files import write_json
from mamushi.commands._source import Source

FOLDER = False
TEXTS = False


def write(source: Source, out: Path) -> None:
    """``params`` are words and choices, ``metrics`` numbers: as ``mlflow.log_params`` and
    ``log_metrics`` or wandb's ``config`` and ``log`` take them. Raises ``UserError`` for a list
    without a manifest."""
    flat = dict(source.flat_manifest())
    metrics = {
        name: value
        for name, value in flat.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    choices = ("seed", "provenance.", "settings.")
    metrics = {name: value for name, value in metrics.items() if not name.startswith(choices)}
    params = {n: v for n, v in flat.items() if n not in metrics and v is not None}
    write_json(out, {"params": params, "metrics": metrics})
