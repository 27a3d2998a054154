"""What jobs took before, as their logs say: see ``mamushi.running.usage``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mamushi.running import usage
from mamushi.running.usage import Usage

SAMPLE = 8
"""Logs of each kind that are read: their median hardly changes with more."""
AXES = ("dataset", "selector", "unlearner", "endpoint", "study")
"""Wildcards that tell apart what a rule computes of a model, the most important first."""


class Measured(NamedTuple):
    """One run of a job."""

    path: str
    day: str
    """When it ended."""
    rule: str
    wildcards: Mapping[str, str]
    used: Usage


def read(path: Path, rule: str = "", wildcards: Mapping[str, str] | None = None) -> Measured | None:
    """What a log says of its job; None for one that is missing, or does not say."""
    try:
        used = usage.last(path.read_text(encoding="utf-8", errors="replace"))
        day = date.fromtimestamp(path.stat().st_mtime).isoformat()
    except OSError:
        return None
    return None if used is None else Measured(str(path), day, rule, wildcards or {}, used)


class History:
    """The logs of past runs; ``patterns`` say where each rule's are, below ``root``."""

    def __init__(self, patterns: Mapping[str, str], root: str | os.PathLike[str] = ".") -> None:
        self._patterns, self._root = patterns, Path(root)
        self._files, self._runs = cache(self._find), cache(self._alike)

    def of(self, rules: Iterable[str], wildcards: Mapping[str, str]) -> list[Measured]:
        """What jobs took that are alike: of the first of ``rules`` that has any of this model, and
        of these those of the same dataset, selector or unlearner where there are some."""
        wanted = tuple(wildcards.get(name) for name in ("model", *AXES))
        return next(filter(None, (self._runs(rule, wanted) for rule in rules)), [])

    def _alike(self, rule: str, wanted: tuple[str | None, ...]) -> list[Measured]:
        model, *axes = wanted
        files = [each for each in self._files(rule) if each[1].get("model") == model]
        for axis, value in zip(AXES, axes, strict=True):
            files = [each for each in files if each[1].get(axis) == value] or files
        step = max(1, -(-len(files) // SAMPLE))
        runs = (read(path, rule, found) for path, found in files[::step])
        return [run for run in runs if run is not None]

    def _find(self, rule: str) -> list[tuple[Path, dict[str, str]]]:
        """The rule's logs, with their wildcards."""
        if rule not in self._patterns:
            return []
        pattern = re.split(r"\{(\w+)\}", self._patterns[rule])
        # Texts and names of wildcards take turns.
        wanted = "".join(
            f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part)
            for place, part in enumerate(pattern)
        )
        found = []
        for path in sorted(self._root.glob("*".join(pattern[::2]))):
            match = re.fullmatch(wanted, path.relative_to(self._root).as_posix())
            found += [(path, match.groupdict())] if match else []
        return found
