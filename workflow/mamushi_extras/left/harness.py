"""lm-evaluation-harness, run as it is, at its defaults, on a model in memory: numbers are those of
its own command on the exported model, with probabilities in fp32."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import located

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

TEXTS_AT_ONCE = 8  # Fixed, since likelihoods of padded texts depend on it by their last digits.


def files_of_tasks(names: Iterable[str]) -> list[str]:
    """Return the files among ``names``, and those that they name: data, or what they include. Their
    paths count from the current folder, or from that of the task."""
    files: list[str] = []
    for path in filter(os.path.isfile, names):
        words = re.findall(r"[^\s'\",\[\]{}]+", Path(path).read_text(encoding="utf-8"))
        places = [Path(folder, word) for word in words for folder in ("", Path(path).parent)]
        files += [path, *(str(place) for place in places if place.is_file())]
    return list(dict.fromkeys(files))


def score_tasks(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    names: Sequence[str],
    examples: int | None,
    precision: str,
) -> list[dict[str, Any]]:
    """Return a row for each metric of each task and group, as ``TASK_SCORES`` has them. Raises what
    the harness does for an unknown task, and `datasets` where a task's data cannot be had."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    reader = HFLM(
        pretrained=model,
        tokenizer=tokenizer,
        mixed_precision_dtype="bfloat16" if precision == "bf16" else None,
        softmax_dtype="float32",
        batch_size=TEXTS_AT_ONCE,
    )
    # Its own tasks are ten thousand files, which it reads all.
    manager = TaskManager(include_defaults=not all(map(os.path.isfile, names)))
    options: dict[str, Any] = {"limit": examples, "task_manager": manager, "log_samples": False}
    with located("tasks.names"):
        answers = simple_evaluate(reader, tasks=[*names], **options)
    rows = []
    for task, metrics in answers["results"].items():
        version = answers["versions"].get(task)
        about = {"task": task, "version": None if version is None else str(version)}
        # Metrics are called `acc,none` and `acc_stderr,none`.
        for key, value in metrics.items():
            metric, _, filtered = key.partition(",")
            if not filtered or metric.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = metrics.get(f"{metric}_stderr,{filtered}")
            row = {"metric": metric, "filter": filtered, "value": float(value)}
            row["se"] = float(error) if isinstance(error, int | float) else None
            rows.append({**about, **row, "examples": metrics.get("sample_len")})
    return rows
