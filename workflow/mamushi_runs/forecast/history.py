"""Time and memory of past jobs, out of their logs: see ``mamushi.running.usage``."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mamushi.running import usage
from mamushi.running.usage import Usage

SAMPLE = 8
"""Logs of a kind that are read: their median hardly changes with more."""
VARYING = ("seed", "beta")
"""Wildcards in which past jobs may differ from the one that is forecast."""


class Past(NamedTuple):
    """A job that has ended."""

    path: Path
    wildcards: Mapping[str, str]
    used: Usage


class History:
    """The logs of past runs; ``patterns`` say where those of each rule are, below ``root``."""

    def __init__(self, patterns: Mapping[str, str], root: str | os.PathLike[str] = ".") -> None:
        self._patterns, self._root = patterns, Path(root)

    def of(self, rule: str, wildcards: Mapping[str, str]) -> list[Past]:
        """Return past jobs of a rule with these wildcards, but for seed and budget."""
        pattern, wanted = "", ""
        # Texts and names of wildcards take turns.
        for place, part in enumerate(re.split(r"\{(\w+)\}", self._patterns.get(rule, ""))):
            if place % 2 and part in VARYING:
                pattern, wanted = pattern + "*", f"{wanted}(?P<{part}>[^/]+)"
            else:
                text = wildcards[part] if place % 2 else part
                pattern, wanted = pattern + glob.escape(text), wanted + re.escape(text)
        found = []
        paths = sorted(self._root.glob(pattern)) if pattern else []
        for path in paths[:: -(-len(paths) // SAMPLE) or 1]:
            match = re.fullmatch(wanted, path.relative_to(self._root).as_posix())
            used = read(path)
            if match and used:
                found.append(Past(path, {**wildcards, **match.groupdict()}, used))
        return found


def read(log: Path) -> Usage | None:
    """Return what a job took by its log; None where the log is missing or does not say."""
    try:
        return usage.parse(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
