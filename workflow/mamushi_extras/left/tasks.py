"""The table ``tasks``: what models reach in tasks, beside the gold model of their seed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mamushi.config.arms import Arm
from mamushi.errors import located
from mamushi.io import paths
from mamushi.io.columns import Table
from mamushi.io.tables import read_table
from mamushi_extras.left.attacks import columns_of
from mamushi_extras.left.schemas import TASK_SCORES, TASKS


def tables(root: Path, files: Iterable[str]) -> dict[Table, list[dict[str, Any]]]:
    """Return the table of some models' ``files``, by their places below ``results``. Raises
    ``KeyError`` for a file of other tasks than gold's, and as ``read_table``."""

    def scores(cell: Mapping[str, Any], arm: str) -> dict[Any, dict[str, Any]]:
        path = paths.under(root, paths.TASK_ANSWERS, **cell, arm=arm)
        rows = read_table(path, TASK_SCORES).to_pylist()
        return {tuple(row[key] for key in ("task", "metric", "filter")): row for row in rows}

    rows = []
    for path in files:
        place = paths.wildcards(paths.TASK_ANSWERS, path) or {}
        cell = {key: place[key] for key in ("dataset", "model", "seed")}
        reached, gold = scores(cell, place["arm"]), scores(cell, "gold")
        about = {**cell, "seed": int(cell["seed"]), **columns_of(Arm.parse(place["arm"]))}
        with located(path):
            rows += [{**about, **row, "gold": gold[key]["value"]} for key, row in reached.items()]
    return {TASKS: rows}
