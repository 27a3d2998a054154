"""Datasets whose tables are there and are about to be made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mamushi.artifacts import paths
from mamushi.configuration import counts
from mamushi.stages import _settings as settings
from mamushi.stages import examples


def remade(config: Mapping[str, Any], dataset: str, needs: Any) -> bool:
    """Return whether a dataset's tables are there and are about to be made again, but only because
    of other raw files or other code: then they may well be the same.

    Where they stay, what the configuration takes of their texts (``needs``) is held against their
    counts: raises ``UserError`` where it is more.
    """
    try:
        with open(paths.DATA_CARD.format(dataset=dataset), encoding="utf-8") as file:
            card = json.load(file)
            before = card["settings"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    now = json.loads(settings.as_json(examples.settings(config, dataset)))
    changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
    if not changed and "counts" in card:
        counts.check(dataset, needs, card["counts"]["sections"].get("inference", {}))
    return bool(changed) and changed <= {"inputs", "code"}
