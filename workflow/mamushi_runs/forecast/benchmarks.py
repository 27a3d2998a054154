"""What jobs took before: the files that Snakemake's ``benchmark:`` writes."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

FIRST, EVERY, LATER = 31, 0.5, 30.0
"""Snakemake looks at a job every half second for the first 31 times, then every 30 seconds."""
SAMPLE = 8
"""Files of each kind that are read: their median hardly changes with more."""
AXES = ("selector", "unlearner", "endpoint", "study")
"""Wildcards that tell apart what a rule computes, beside dataset and model."""


class Measured(NamedTuple):
    """One run of a job."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of processors."""
    rss_mb: float | None
    """Largest resident memory of the job's processes together."""


def read(path: str | os.PathLike[str]) -> Measured | None:
    """A benchmark file: its last row; None for one that is missing or is none.

    Columns are found by name, and may be absent or ``NA`` (a job that ended before it was looked
    at) but for the seconds.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            lines = handle.read().splitlines()
        row = dict(zip(lines[0].split("\t"), lines[-1].split("\t"), strict=False))
        wall = _number(row.get("s")) if len(lines) > 1 else None
    except (OSError, UnicodeDecodeError, IndexError):
        return None
    if wall is None:
        return None
    cpu = cpu_seconds(wall, _number(row.get("cpu_time")))
    return Measured(wall, cpu, _number(row.get("max_rss")))


def cpu_seconds(wall: float, seen: float | None) -> float:
    """Processor time of a job that ran for ``wall`` seconds, of which Snakemake saw ``seen``.

    It sees what had been used when it last looked, which is up to half a second before the end of
    a job, and up to half a minute for one that took longer than 15 seconds. What came after is
    taken to have gone on at the same rate.
    """
    slow = FIRST * EVERY
    looked = int(wall / EVERY) * EVERY
    if wall > slow:
        looked = slow + int((wall - slow) / LATER) * LATER
    if not seen or looked < EVERY:
        # Over before it was looked at: a short job, of one processor at most.
        return max(wall, seen or 0.0)
    return seen * wall / looked


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value >= 0 and value != float("inf") else None


@dataclass(frozen=True)
class Past:
    """Benchmarks of jobs that are alike."""

    runs: tuple[Measured, ...]
    like: str
    """In what they are like the job asked for, for people."""
    dataset: str | None
    """The dataset that they are of, where it is another one; what they took is to be scaled."""

    @cached_property
    def wall(self) -> float:
        return median(run.wall for run in self.runs)

    @cached_property
    def cpu(self) -> float:
        return median(run.cpu for run in self.runs)

    @cached_property
    def rss_mb(self) -> float | None:
        return max((run.rss_mb for run in self.runs if run.rss_mb is not None), default=None)


class History:
    """The benchmarks of past runs, by rule; ``patterns`` say where each rule's are.

    Paths are relative to ``root``. Of each kind of job a few files are read.
    """

    def __init__(self, patterns: Mapping[str, str], root: str | os.PathLike[str] = ".") -> None:
        self._patterns, self._root = patterns, os.fspath(root)
        self._found: dict[str, dict[tuple[str | None, ...], list[str]]] = {}
        self._past: dict[tuple[str | None, ...], Past | None] = {}
        self._read: dict[str, Measured | None] = {}

    @property
    def files(self) -> int:
        """How many benchmarks have been used."""
        return sum(run is not None for run in self._read.values())

    def of(self, rule: str, wildcards: Mapping[str, str]) -> Past | None:
        """What jobs of the rule and the same model took: those of the same dataset and selector or
        unlearner, else of the same dataset, else of another one; None without any."""
        model, dataset = wildcards.get("model"), wildcards.get("dataset")
        axes = tuple(wildcards.get(axis) for axis in AXES)
        key = (rule, model, dataset, *axes)
        if key not in self._past:
            self._past[key] = self._choose(rule, model, dataset, axes)
        return self._past[key]

    def _choose(
        self,
        rule: str,
        model: str | None,
        dataset: str | None,
        axes: tuple[str | None, ...],
    ) -> Past | None:
        kinds = self._kinds(rule)
        exact = self._runs(kinds.get((model, dataset, *axes), ()))
        if exact:
            given = [name for name in (model, dataset, *axes) if name is not None]
            return Past(exact, "same rule, model and data" if given else "same rule", None)
        if any(axes):
            mine = [files for kind, files in kinds.items() if kind[:2] == (model, dataset)]
            alike = self._runs(_joined(mine))
            if alike:
                return Past(alike, "same rule, model and data, other selector", None)
        others = sorted({kind[1] or "" for kind in kinds if kind[0] == model and kind[1]})
        for other in others:
            if dataset is not None and model is not None:
                mine = [files for kind, files in kinds.items() if kind[:2] == (model, other)]
                same = kinds.get((model, other, *axes))
                runs = self._runs(same or _joined(mine))
                if runs:
                    return Past(runs, f"same rule and model, scaled from {other}", other)
        return None

    def _runs(self, files: Iterable[str]) -> tuple[Measured, ...]:
        listed = sorted(files)
        step = max(1, -(-len(listed) // SAMPLE))
        for path in listed[::step]:
            if path not in self._read:
                self._read[path] = read(path)
        runs = (self._read[path] for path in listed[::step])
        return tuple(run for run in runs if run is not None)

    def _kinds(self, rule: str) -> dict[tuple[str | None, ...], list[str]]:
        """The rule's files by model, dataset and ``AXES``."""
        if rule not in self._found:
            kinds: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
            pattern = self._patterns.get(rule)
            for path, found in self._matching(pattern) if pattern else ():
                names = ("model", "dataset", *AXES)
                kinds[tuple(found.get(name) for name in names)].append(path)
            self._found[rule] = kinds
        return self._found[rule]

    def _matching(self, pattern: str) -> Iterable[tuple[str, dict[str, str]]]:
        """Files at a pattern with their wildcards."""
        parts = re.split(r"\{(\w+)\}", pattern)
        seen: set[str] = set()
        wanted = ""
        for place, part in enumerate(parts):
            if place % 2 == 0:
                wanted += re.escape(part)
            elif part in seen:
                wanted += f"(?P={part})"
            else:
                wanted += f"(?P<{part}>[^/]+)"
                seen.add(part)
        matches = re.compile(wanted).fullmatch
        folder = parts[0].rpartition("/")[0]
        for path in _walk(self._root, folder):
            found = matches(path)
            if found:
                yield os.path.join(self._root, path), found.groupdict()


def _joined(kinds: Iterable[list[str]]) -> list[str]:
    """Several lists of files in one."""
    return [path for files in kinds for path in files]


def _walk(root: str, folder: str) -> Iterable[str]:
    """The files below a folder, relative to ``root``."""
    try:
        entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path)
        elif entry.name.endswith(".tsv"):
            yield path
