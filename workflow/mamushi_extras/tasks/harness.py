"""lm-evaluation-harness, run as it is, at its defaults, on a model in memory: numbers are those of
its own command on the exported model, with probabilities in fp32."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError, extra, located

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

KEY = "tasks.names"
TEXTS_AT_ONCE = 8  # Fixed, since likelihoods of padded texts depend on it by their last digits.


def require_tasks(names: Collection[str]) -> None:
    """Raise ``UserError`` where no task is named, or the harness is not installed. Imports nothing
    heavy."""
    if not names:
        raise UserError("no task is named", where=KEY, do="name some, such as arc_easy")
    if importlib.util.find_spec("lm_eval") is None:
        raise UserError("lm-evaluation-harness is not installed", where=KEY, do=extra("tasks"))


def files_of_tasks(names: Iterable[str]) -> list[str]:
    """Return the files among ``names``, and those that they name: data, or what they include. Their
    paths count from the current folder, or from that of the task."""
    files: list[str] = []
    for path in filter(os.path.isfile, names):
        words = re.findall(r"[^\s'\",\[\]{}]+", Path(path).read_text(encoding="utf-8"))
        places = [Path(folder, word) for word in words for folder in ("", Path(path).parent)]
        files += [path, *(str(place) for place in places if place.is_file())]
    return list(dict.fromkeys(files))


def reached_by(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    names: Sequence[str],
    examples: int | None,
    precision: str,
) -> list[dict[str, Any]]:
    """Return a row for each metric of each task and group, as ``TASK_SCORES`` has them.

    Raises ``UserError`` where the harness has neither a task nor a group of that name and there is
    no such file, and the error of `datasets` where a task's data cannot be had.
    """
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    inbuilt = [name for name in names if not os.path.isfile(name)]
    # Its own tasks are ten thousand files, which it reads all.
    manager = TaskManager(include_defaults=bool(inbuilt))
    for name in sorted({*inbuilt} - {*manager.all_tasks}):
        problem = f"lm-evaluation-harness has no task {name!r}, and there is no such file"
        raise UserError(problem, where=KEY, do="`lm_eval ls tasks` lists its tasks")
    reader = HFLM(
        pretrained=model,
        tokenizer=tokenizer,
        mixed_precision_dtype="bfloat16" if precision == "bf16" else None,
        softmax_dtype="float32",
        batch_size=TEXTS_AT_ONCE,
    )
    options: dict[str, Any] = {"limit": examples, "task_manager": manager, "log_samples": False}
    with located(f"{KEY}: the data of a task"):
        answers = simple_evaluate(reader, tasks=[*names], **options)
    return [
        row
        for task, metrics in answers["results"].items()
        for row in _rows(task, metrics, answers["versions"].get(task))
    ]


def _rows(task: str, metrics: Mapping[str, Any], version: Any) -> list[dict[str, Any]]:
    """Return the rows of a task; its metrics are called ``acc,none`` and ``acc_stderr,none``."""
    head = {"task": task, "version": None if version is None else str(version)}
    rows = []
    for key, value in metrics.items():
        metric, _, filtered = key.partition(",")
        if not filtered or metric.endswith("_stderr") or not isinstance(value, int | float):
            continue
        error = metrics.get(f"{metric}_stderr,{filtered}")
        row = {"metric": metric, "filter": filtered, "value": float(value)}
        row["se"] = float(error) if isinstance(error, int | float) else None
        rows.append({**head, **row, "examples": metrics.get("sample_len")})
    return rows
