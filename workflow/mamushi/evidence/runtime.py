"""Time selections: wall time, CPU time and memory, from embeddings in memory to a ranking.

A selector that derives from another is timed with that other: without it there is no selection.
Selectors take turns, once each per repeat, so that a machine that slows down for a while slows all
of them and not the one whose turn it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.registry import load, plugin
from mamushi.running.machine import cores, processor
from mamushi.selection.pool import Pool, Scored, rank

KIB_PER_MIB = 1024
PROC = Path("/proc/self")
WARM_UP = 64
"""Examples per domain of the selection that goes before all timing."""


@dataclass(frozen=True)
class Selector:
    """A configured selector: its plug-in ``kind`` and all of its ``settings``."""

    kind: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Timing:
    """``wall`` and ``cpu`` (repeats,) in seconds; ``peak`` (repeats,) in MiB beyond what was in
    use before."""

    wall: NDArray[np.float64]
    cpu: NDArray[np.float64]
    peak: NDArray[np.float64]


Calls = dict[str, Callable[[], object]]


def selections(
    pool: Pool,
    selectors: Mapping[str, Selector],
    seed: int,
    bases: Mapping[str, Selector] | None = None,
) -> tuple[Calls, list[str]]:
    """Return a selection of ``pool`` per selector, to be called, and the names of those left out.

    ``bases`` are there to derive from alone. Left out is what needs the true density ratio where
    ``pool`` has none. Modules are imported here. Raises ``UserError`` when none is left.
    """
    known = {**(bases or {}), **selectors}
    chains = {name: _chain(name, known) for name in selectors}
    left_out = [
        name
        for name, chain in sorted(chains.items())
        if pool.truth is None
        and any(plugin("selector", one.kind).literals.get("NEEDS_TRUTH") for one in chain)
    ]
    calls: Calls = {
        name: partial(_select, pool, chain, [load("selector", one.kind) for one in chain], seed)
        for name, chain in chains.items()
        if name not in left_out
    }
    if not calls:
        raise UserError(
            "no selector to time: all need the true density ratio",
            where="selectors",
            do="name at least one that can run on this dataset",
        )
    return calls, left_out


def warm_up(
    pool: Pool,
    selectors: Mapping[str, Selector],
    seed: int,
    bases: Mapping[str, Selector] | None = None,
) -> None:
    """Run every selection once on a few examples: what is imported late is imported then.

    A selector may refuse so few; the timed run tells whether it refuses all.
    """
    kept = np.zeros(len(pool.ids), dtype=np.bool_)
    for domain in (pool.forget, ~pool.forget):
        kept[np.flatnonzero(domain)[:WARM_UP]] = True
    for call in selections(pool.part(kept), selectors, seed, bases)[0].values():
        with contextlib.suppress(UserError):
            call()


def measure(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Timing]:
    """Call everything in turn, ``repeats`` times.

    CPU time is that of all threads of the process. Raises ``ValueError`` for less than one repeat.
    """
    if repeats < 1:
        raise ValueError("repeats must be 1 or more")
    costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            costs[name].append(_timed(call))
    return {name: Timing(*np.array(each).T) for name, each in costs.items()}


def row(timing: Timing) -> dict[str, float]:
    """Return the columns of the table ``runtime``: medians with half the interquartile range.

    Memory is the largest of the repeats, because a run that finds memory which an earlier one gave
    back seems to need less.
    """
    found: dict[str, float] = {}
    for name in ("wall", "cpu"):
        low, middle, high = np.quantile(getattr(timing, name), [0.25, 0.5, 0.75])
        found |= {f"{name}_seconds": float(middle), f"{name}_spread": float(high - low) / 2}
    return {**found, "peak_mib": float(timing.peak.max())}


def hardware() -> dict[str, Any]:
    """Return ``cpu`` (the model's name), ``cores`` that this process may use, ``memory_gib``,
    ``system`` and how peak memory is found (``memory_by``)."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": processor(),
        "cores": cores(),
        "memory_gib": round(pages / 2**30, 1),
        "system": platform.system(),
        "memory_by": "VmHWM" if _reset_peak() else "ru_maxrss",
    }


def _chain(name: str, selectors: Mapping[str, Selector]) -> list[Selector]:
    """Return the selectors to run for ``name``: one that derives from none first, its own last."""
    one = selectors[name]
    derives = plugin("selector", one.kind).literals.get("DERIVES")
    return [one] if derives is None else [*_chain(one.settings[derives], selectors), one]


def _select(pool: Pool, chain: list[Selector], modules: list[Any], seed: int) -> NDArray[np.int64]:
    base: Scored | None = None
    for one, module in zip(chain, modules, strict=True):
        given = replace(pool, base=None if base is None else Scored(base.scores, fold=base.fold))
        base = module.score(given, dict(one.settings), seed)
    assert base is not None
    return rank(pool, base)


def _timed(call: Callable[[], object]) -> tuple[float, float, float]:
    """Return seconds of wall and CPU time, and the peak in MiB beyond what was in use before."""
    gc.collect()
    # What was freed goes back to the system, so that the next selection's own memory shows.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS") if _reset_peak() else _peak()
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return wall, cpu, max(0.0, _peak() - before) / KIB_PER_MIB


def _reset_peak() -> bool:
    """Set the kernel's record of the peak to what is in use now, and say whether it could be.

    Linux does so for "5" in ``clear_refs`` (proc(5)). A record needs no thread that watches, which
    would take time from what is timed and miss what is short.
    """
    try:
        (PROC / "clear_refs").write_text("5", encoding="ascii")
        _status("VmHWM")
    except (OSError, ValueError):
        return False
    return True


def _peak() -> float:
    """Return the most KiB in use since the record was reset, or since the process began where it
    cannot be: a selection that stays below an earlier peak then counts as 0."""
    with contextlib.suppress(OSError, ValueError):
        return _status("VmHWM")
    most = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most / 1024 if sys.platform == "darwin" else most


def _status(key: str) -> float:
    """Raises ``OSError`` without this file of the system, and ``ValueError`` without this line."""
    lines = (PROC / "status").read_text(encoding="utf-8").splitlines()
    (found,) = (line for line in lines if line.startswith(f"{key}:"))
    return float(found.split()[1])
