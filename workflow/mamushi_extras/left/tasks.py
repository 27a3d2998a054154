"""The table ``tasks``: what models reach in tasks, beside the gold model of their seed."""

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

from mamushi.config.arms import Arm
from mamushi.io import paths
from mamushi.io.columns import Table
from mamushi.io.tables import read_table
from mamushi_extras.left.attacks import columns_of
from mamushi_extras.left.schemas import TASK_SCORES, TASKS


def tables(root: Path, files: Iterable[str]) -> dict[Table, list[dict[str, Any]]]:
    """Return the table of some models' ``files``, by their places below ``results``."""
    rows, key = list[dict[str, Any]](), itemgetter("task", "metric", "filter")
    for path in files:
        place = paths.wildcards(paths.TASK_ANSWERS, path) or {}
        cell = {name: place[name] for name in ("dataset", "model", "seed")}
        reached, gold = (
            read_table(paths.under(root, paths.TASK_ANSWERS, **cell, arm=arm), TASK_SCORES)
            for arm in (place["arm"], "gold")
        )
        theirs = {key(row): row["value"] for row in gold.to_pylist()}
        about = {**cell, "seed": int(place["seed"]), **columns_of(Arm.parse(place["arm"]))}
        rows += [{**about, **row, "gold": theirs[key(row)]} for row in reached.to_pylist()]
    return {TASKS: rows}
