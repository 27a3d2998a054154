"""The table ``tasks``: what every model reaches, beside the gold model of its seed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config import grid
from mamushi.config.arms import Arm
from mamushi.io import paths
from mamushi_extras.tasks.harness import require_tasks

if TYPE_CHECKING:
    import pyarrow as pa

ENDPOINTS_ASKED = ("contaminated", "beta0", "gold")


def models_asked(axes: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield cell and arm of every model that is asked; the base model is the same for every seed,
    and asked once."""
    for cell in grid.cells({**axes, "seeds": axes["seeds"][:1]}):
        yield cell, "base"
    names = [*ENDPOINTS_ASKED, *grid.retrained_arms(axes), *grid.unlearned_arms(axes)]
    for cell in grid.cells(axes):
        yield from ((cell, name) for name in names)


def answer_files(axes: Mapping[str, Any], cut: Container[str]) -> list[str]:
    """Return the file of every model that is asked. ``cut`` are models over several GPUs; raises
    ``UserError`` as ``require_tasks``."""
    require_tasks(axes["names"], [model for model in axes["models"] if model in cut])
    return [paths.TASK_ANSWERS.format(**cell, arm=arm) for cell, arm in models_asked(axes)]


def collect_tasks(axes: Mapping[str, Any], root: str | Path) -> pa.Table:
    """Return the table ``tasks`` of all cells of the axes, from the files of their models. Raises
    ``UserError`` for one that is missing or damaged, or of other tasks than gold's."""
    import pyarrow as pa

    from mamushi.errors import UserError
    from mamushi.io.tables import read_table
    from mamushi_extras.tasks.schemas import TASK_SCORES, TASKS

    def scores(cell: Mapping[str, Any], arm: str) -> tuple[Path, dict[Any, dict[str, Any]]]:
        path = paths.under(root, paths.TASK_ANSWERS, **cell, arm=arm)
        keys = ("task", "metric", "filter")
        rows = read_table(path, TASK_SCORES).to_pylist()
        return path, {tuple(row[key] for key in keys): row for row in rows}

    rows = []
    for cell, name in models_asked(axes):
        arm, gold = Arm.parse(name), scores(cell, "gold")[1]
        head = {**cell, "method": arm.endpoint or arm.unlearner or "retraining"}
        head |= {"selector": arm.selector, "beta": None if arm.beta is None else float(arm.beta)}
        path, reached = scores(cell, name)
        if reached.keys() != gold.keys():
            problem = "is of other tasks than those of gold"
            raise UserError(problem, where=path, do="delete both and run again")
        rows += [{**head, **row, "gold": gold[key]["value"]} for key, row in reached.items()]
    return pa.Table.from_pylist(rows, schema=TASKS.schema)
