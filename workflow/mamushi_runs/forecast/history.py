"""What jobs took before: the files that Snakemake's ``benchmark:`` writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

EVERY, SLOW, LATER = 0.5, 15.5, 30.0
"""Seconds between Snakemake's looks at a job, until when, and between those after that."""
SAMPLE = 8
"""Files of each kind that are read: their median hardly changes with more."""
AXES = ("dataset", "selector", "unlearner", "endpoint", "study")
"""Wildcards that tell apart what a rule computes of a model, the most important first."""


class Measured(NamedTuple):
    """One run of a job."""

    path: str
    day: str
    """When it ended."""
    rule: str
    wildcards: Mapping[str, str]
    wall: float
    """Seconds."""
    cpu: float
    """Seconds of processors."""
    rss_mb: float | None
    """Largest resident memory of the job's processes together."""


def read(path: Path, rule: str = "", wildcards: Mapping[str, str] | None = None) -> Measured | None:
    """A benchmark file: its last row; None for one that is missing or is none.

    Columns are found by name, and may be absent or ``NA`` (a job that ended before it was looked
    at) but for the seconds.
    """
    try:
        head, *_, last = path.read_text(encoding="utf-8").splitlines()
        row = dict(zip(head.split("\t"), last.split("\t"), strict=False))
        day = date.fromtimestamp(path.stat().st_mtime).isoformat()
    except (OSError, ValueError):
        return None
    wall, seen, rss = (_number(row.get(name)) for name in ("s", "cpu_time", "max_rss"))
    if wall is None:
        return None
    return Measured(str(path), day, rule, wildcards or {}, wall, cpu_seconds(wall, seen), rss)


def cpu_seconds(wall: float, seen: float | None) -> float:
    """Processor time of a job that ran for ``wall`` seconds, of which Snakemake saw ``seen`` when
    it last looked: every half second, later every 30. The rest went on at the same rate."""
    looked = wall // EVERY * EVERY if wall < SLOW else SLOW + (wall - SLOW) // LATER * LATER
    # One that was over before it was looked at is short, and had one processor at most.
    return seen * wall / looked if seen and looked else max(wall, seen or 0.0)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


class History:
    """The benchmarks of past runs; ``patterns`` say where each rule's are, below ``root``."""

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
        """The rule's files, with their wildcards."""
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
