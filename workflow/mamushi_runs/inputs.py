"""What rules read and write that depends on the model or the dataset of a job."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.config import arms, counts, questions
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.stages import _settings as settings
from mamushi_runs import internals

Config = Mapping[str, Any]
Found = Callable[[Any], Any]
"""Paths by the wildcards of a job."""
SHARD = internals.inspected(lambda wildcards: getattr(wildcards, "scatteritem", []))


def of_arm(config: Config, pattern: str, name: str | None = None) -> str | Found:
    """Return the pattern for the model whose weights an arm has, that of the wildcards or ``name``.
    Mostly that is the model itself, and the pattern serves as it is: a function in its place would
    be called for each of thousands of jobs in every dry run."""
    if not any(model.get("base") for model in config["models"].values()):
        return pattern
    return lambda wildcards: pattern.replace(
        "{model}", arms.Arm.parse(name or wildcards.arm).base(config, wildcards.model)
    )


def tensors_of(config: Config, name: str | None = None) -> Found:
    """Return the trained tensors with which an arm is opened, that of the wildcards or ``name``;
    none where these are a model's own weights."""

    def path(wildcards: Any) -> Any:
        arm = arms.Arm.parse(name or wildcards.arm).origin(config, wildcards.model)
        own = arms.is_untrained(config, wildcards.model, arm)
        return [] if own else paths.TRAINED.replace("{arm}", arm)

    return path


def answers_of(arm: str, asked: Sequence[str]) -> dict[str, Any]:
    """Return the tables of all questions to an arm, by their names; none of those not asked."""
    wanted = questions.answers(asked)
    return {
        name: path.replace("{arm}", arm) if name in wanted else []
        for name, path in questions.answers([*questions.QUESTIONS]).items()
    }


def kept_tensors(config: Config) -> Callable[[Any, Any], Any]:
    """Return where a job keeps its trained tensors, if it is to. Those that only
    ``keep_checkpoints`` asks for are no output of the rule: jobs that ran without it would lack
    one, and Snakemake looks for no change in a job with an output that it has no record of. What is
    derived from ``output`` does not count as a change either."""

    def path(wildcards: Any, output: Any) -> Any:
        if "tensors" in output.keys():  # noqa: SIM118
            return output.tensors
        beside = os.path.join(os.path.dirname(output.card), "trained.safetensors")
        return beside if config["keep_checkpoints"] else []

    return internals.inspected(path)


def shards(workflow: Any, gather: Any, table: str, made_with: Callable[[Any], str]) -> Found:
    """Return the shards that the rule of a table puts together; none where it makes the table
    itself, or a shard. How many they are has no part in what it holds, and a change of that must
    run nothing again: a table that was made with the same settings keeps its shards."""
    pattern = paths.SHARD.replace("{table}", Path(table).stem)

    def found(wildcards: Any) -> list[str]:
        if SHARD(wildcards):
            return []
        kept = internals.shards_of(workflow, table.format(**wildcards), made_with(wildcards))
        if kept is not None:
            return kept
        parts: list[str] = gather.texts(pattern, **wildcards)
        return parts if len(parts) > 1 else []

    return internals.inspected(found)


def remade(config: Config, dataset: str, needs: Any) -> bool:
    """Return whether a dataset's tables are there and are about to be made again, but only because
    of other raw files or other code: then they may well be the same. Where they stay, what the
    configuration takes of their texts (``needs``) is held against their counts: raises
    ``UserError`` where it is more."""
    try:
        card = read_json(paths.DATA_CARD.format(dataset=dataset))
        before = card["settings"]
    except (OSError, UserError, LookupError):
        return False
    now = json.loads(settings.as_json(settings.of("examples", config, dataset=dataset)))
    changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
    if not changed and "counts" in card:
        counts.check(dataset, needs, card["counts"]["sections"].get("inference", {}))
    return bool(changed) and changed <= {"inputs", "code"}
