"""What rules read that depends on the model or the dataset of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mamushi.config import arms
from mamushi.config.kinds import Config
from mamushi.io import paths

PathsOf = Callable[[Any], Any]
"""Paths by the wildcards of a job."""


def of_arm(config: Config, pattern: str, name: str | None = None) -> str | PathsOf:
    """Return the pattern for the model whose weights an arm has, that of the wildcards or ``name``.
    Mostly that is the model itself, and the pattern serves as it is: a function in its place would
    be called for each of thousands of jobs in every dry run."""
    if not any(model.get("base") for model in config["models"].values()):
        return pattern
    return lambda wildcards: pattern.replace(
        "{model}", arms.Arm.parse(name or wildcards.arm).base(config, wildcards.model)
    )


def trained_of(config: Config, name: str | None = None) -> PathsOf:
    """Return the trained tensors that are laid over an arm's base, that of the wildcards or
    ``name``: its own, or of one that is unlearned its start's; none of untrained weights."""

    def path(wildcards: Any) -> Any:
        arm = arms.Arm.parse(name or wildcards.arm)
        is_retrained = arm.unlearner is None and arm.endpoint is None
        origin = wildcards.arm if is_retrained else arm.origin(config, wildcards.model)
        untrained = arms.is_untrained(config, wildcards.model, origin)
        return [] if untrained else paths.TRAINED.replace("{arm}", origin)

    return path


def unlearned_of(wildcards: Any) -> Any:
    """Return the tensors that unlearning trained of an arm; none of one that was not unlearned."""
    return paths.TRAINED if arms.Arm.parse(wildcards.arm).unlearner else []
