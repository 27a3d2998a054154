"""Tasks of lm-evaluation-harness, run by the harness as it is, at its defaults, on a model in
memory: a number is that of the command ``lm_eval`` on the exported model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError, extra

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

WHERE = "utility.tasks"


def require(tasks: Sequence[str]) -> Any:
    """Return the harness's manager of tasks, which knows these.

    Raises ``UserError`` where the harness is not installed, or has neither a task nor a group of
    that name and there is no such file. Does not look at a task's data.
    """
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise UserError(
            f"lm-evaluation-harness cannot be imported ({error})",
            where=WHERE,
            do=f"install the extra: {extra('harness')}, or leave the list empty",
        ) from None
    named = [task for task in tasks if not os.path.isfile(task)]
    # Its own tasks are ten thousand files, which it reads all.
    manager = TaskManager(include_defaults=bool(named))
    for task in sorted({*named} - {*manager.all_tasks}):
        raise UserError(
            f"lm-evaluation-harness knows no task {task!r}, and there is no such file",
            where=WHERE,
            do="`lm_eval ls tasks` lists its tasks",
        )
    return manager


def scores(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tasks: Sequence[str],
    precision: str,
    manager: Any,
) -> dict[str, list[Any]]:
    """Return the columns of ``task_scores``: each metric of each task and group, with the harness's
    standard error over the task's examples, where it has one. ``manager`` is of ``require``."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM

    wrapped = HFLM(
        pretrained=model,
        tokenizer=tokenizer,
        mixed_precision_dtype="bfloat16" if precision == "bf16" else None,
        batch_size=8,
    )
    asked = simple_evaluate(wrapped, tasks=[*tasks], task_manager=manager, log_samples=False)
    columns: dict[str, list[Any]] = {name: [] for name in ("task", "metric", "value", "error")}
    for task, metrics in asked["results"].items():
        for key, value in metrics.items():
            metric, _, kind = key.partition(",")
            if not kind or metric.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = metrics.get(f"{metric}_stderr,{kind}")
            error = float(error) if isinstance(error, int | float) else None
            row = (task, metric if kind == "none" else key, float(value), error)
            for column, cell in zip(columns.values(), row, strict=True):
                column.append(cell)
    return columns
