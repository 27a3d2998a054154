"""Targets on Snakemake's command line that do not exist: what was probably meant."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mamushi.errors import UserError, suggestion


def check(workflow: Any, snakefiles: Iterable[str]) -> None:
    """Raise ``UserError`` for a target that is no rule, and no file that is there or that a rule
    makes; not where another workflow, which has the targets, imports the ``snakefiles``. They are
    read off the command line, since Snakemake tells them only after it has looked for them."""
    started = Path(sys.argv[0])
    by_name = started.name == "snakemake" or started.parent.name == "snakemake"
    includes_rules = Path(workflow.main_snakefile) in map(Path, snakefiles)
    if workflow.is_main_process and includes_rules and by_name:
        from snakemake import cli

        # Without the profiles: they name no target, and a path to one from the folder in which
        # Snakemake was started no longer leads there.
        check_all(workflow, cli.get_argument_parser().parse_args(sys.argv[1:]).targets)


def check_all(workflow: Any, targets: Sequence[str]) -> None:
    """Raise ``UserError`` as ``check`` for these targets."""
    rules = list(workflow.rules)
    names = {rule.name for rule in rules}
    for target in targets:
        if target in names or Path(target).exists() or any(r.is_producer(target) for r in rules):
            continue
        # Of files, those whose name holds no wildcard.
        candidates = {str(file) for rule in rules for file in rule.output if "{" not in str(file)}
        if "/" not in target:
            candidates = {rule.name for rule in rules if not rule.output}
        raise UserError(f"no target {target!r}{suggestion(target, candidates)}")
