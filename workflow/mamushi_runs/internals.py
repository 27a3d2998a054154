"""All that reaches into Snakemake beyond its language. Looked at in version 9.27.1.

``inspected`` and ``keep_garbage`` save 5% and 15% of the CPU time of a dry run of the paper's grid.
Tests are in ``tests/dag``.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def inspected(function: Function) -> Function:
    """Note the parameters of a rule's function. Snakemake asks for them at every call, thousands of
    times in a dry run, and looks into the function each time unless they are noted."""
    from snakemake.common import overwrite_function_params

    overwrite_function_params(function, inspect.signature(function).parameters)
    return function


def keep_garbage() -> None:
    """Collect garbage less often: a grid of thousands of jobs makes millions of objects that stay,
    and Python would look through them at every 700th new one."""
    gc.set_threshold(200_000, 50, 100)


def compare_what_is_recorded() -> None:
    """Do nothing: to go with its call in the rules."""


def serialize_without_pandas() -> None:
    """Do nothing: to go with its call in the rules."""


def shards_of(workflow: Any, table: str, params: str) -> list[str] | None:
    """Return the shards of a table that was made with these parameters, None if it was not; by
    Snakemake's record of it alone, in which every job sees what the main process saw."""
    from snakemake.io import IOFile

    record = workflow.persistence.metadata(IOFile(table))
    if record is None or repr(params) not in record.params:
        return None
    return [path for path in record.input if "/shards/" in path]


def start_at_once(workflow: Any) -> None:
    """Do nothing: to go with its call in the rules."""


def make_checkpoint(workflow: Any, checkpoints: Any, name: str) -> None:
    """Make the last rule that was read a checkpoint called ``name``: the language has another word
    for it, with which all of the rule would have to be written twice."""
    *_, rule = workflow.rules
    rule.is_checkpoint = True
    checkpoints.register(rule, fallback_name=name)


def deploy(rules: Iterable[Any], folder: str, environment: str) -> None:
    """Let the rules of the files in a folder run in a conda environment; the language has no word
    for several. Rules that take over from them have it too."""
    for rule in rules:
        if rule.shellcmd and Path(rule.snakefile).is_relative_to(folder):
            rule.conda_env = rule.ruleinfo.conda_env = environment
