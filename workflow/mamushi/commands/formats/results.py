"""results.json for trackers: what the list was made with, and its numbers, flat"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mamushi.artifacts.files import write_json
from mamushi.commands._source import Source

FOLDER = False
TEXTS = False


def write(source: Source, out: Path) -> None:
    """``params`` are words and choices, ``metrics`` numbers: as ``mlflow.log_params`` and
    ``log_metrics`` or wandb's ``config`` and ``log`` take them. Raises ``UserError`` for a list
    without a manifest."""
    params: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    for name, value in _flat(source.manifest(), ""):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and not name.startswith(("seed", "provenance.", "settings.")):
            metrics[name] = value
        elif value is not None:
            params[name] = value
    write_json(out, {"params": params, "metrics": metrics})


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the values of nested objects by dotted names."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else key)
    else:
        yield name, json.dumps(value) if isinstance(value, list) else value
