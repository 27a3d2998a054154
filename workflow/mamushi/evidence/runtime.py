"""Time selections: wall and CPU time from embeddings in memory to a ranking, or by logs.

A selector that derives from another is timed with that other: without it there is no selection.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool, Scored, rank


class Selector(NamedTuple):
    """A configured selector: its plug-in ``kind`` and all of its ``settings``."""

    kind: str
    settings: Mapping[str, Any]


TOOK = re.compile(r"took ([\d.]+) s, ([\d.]+) s of CPU$", re.M)


def logged(log: str | Path) -> tuple[float, float] | None:
    """Return the wall and CPU seconds that a job's log ends with; None where it does not say,
    because its results were there already."""
    try:
        found = TOOK.findall(Path(log).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (float(found[-1][0]), float(found[-1][1])) if found else None


def measure(
    pool: Pool, names: list[str], known: Mapping[str, Selector], seed: int, repeats: int
) -> dict[str, NDArray[np.float64]]:
    """Return wall and CPU seconds (repeats, 2) of each selection of ``pool``, CPU of all threads.

    ``known`` also has what those ``names`` derive from. Selectors take turns, so that a machine
    that slows down for a while slows all of them.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            wall, cpu = time.perf_counter(), time.process_time()
            rank(pool, _scored(pool, name, known, seed))
            found[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {name: np.array(seconds) for name, seconds in found.items()}


def _scored(pool: Pool, name: str, known: Mapping[str, Selector], seed: int) -> Scored:
    kind, settings = known[name]
    derives = plugin("selector", kind).literals.get("DERIVES")
    if derives is not None:
        base = _scored(pool, settings[derives], known, seed)
        pool = replace(pool, base=Scored(base.scores, fold=base.fold))
    scored: Scored = load("selector", kind).score(pool, dict(settings), seed)
    return scored
