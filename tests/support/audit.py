"""What runs twice at the same time, found out from /proc and not from the program's own locks."""

import contextlib
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

PRIMARY = ("--out", "--card", "--out-folder")
HEAVY = ("libtorch", "libarrow", "_multiarray_umath")
"""Libraries that a command loads to compute, and none that only waits."""
OVERLAP = 1.0
"""Seconds of CPU time that two processes must both have used while both were there. Less is the
end of one, which has given up its output and is unloading torch."""


def commands(folder: Path) -> dict[int, list[str]]:
    """The stage commands that run in a folder: what follows ``python -m mamushi``, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # Processes end while they are looked at.
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                python = words[0].rpartition("/")[2].startswith("python")
                ours = words[1:3] == ["-m", "mamushi"]
                if python and ours and (entry / "cwd").samefile(folder):
                    found[int(entry.name)] = words[3:]
    return found


def output(words: list[str]) -> str:
    """Stage and primary output of a command."""
    name = next(option for option in PRIMARY if option in words)
    return f"{words[0]} {words[words.index(name) + 1]}"


def _computes(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return any(name in Path(f"/proc/{pid}/maps").read_text() for name in HEAVY)
    return False


def _cpu(pid: int) -> float:
    """Seconds of CPU time of a process so far, 0 for one that is gone."""
    with contextlib.suppress(OSError):
        # After the name in parentheses, which may hold anything: utime and stime.
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _writes(pid: int) -> set[str]:
    """Unfinished files that a process has open, without what tells one writer from another."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                name = os.readlink(entry)
                if name.endswith(".part"):
                    found.add(name.rpartition(".")[0].rpartition("." + os.uname().nodename)[0])
    return found


@dataclass
class Audit:
    """Looks at all commands in a folder many times a second, in a thread of its own."""

    folder: Path
    every: float = 0.05
    doubles: dict[str, str] = field(default_factory=dict)
    """Outputs that two processes computed or wrote at the same time, and how it was seen."""
    waits: set[tuple[str, int]] = field(default_factory=set)
    """Outputs and the processes that were there for them while another one computed."""
    samples: int = 0

    def __enter__(self) -> Self:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        together: dict[tuple[int, int], tuple[float, float]] = {}
        computing: dict[int, bool] = {}
        while not self._end.wait(self.every):
            self.samples += 1
            groups: dict[str, list[int]] = defaultdict(list)
            running = commands(self.folder)
            computing = {pid: computing.get(pid, False) for pid in running}
            for pid, words in running.items():
                # What is loaded stays loaded.
                computing[pid] = computing[pid] or _computes(pid)
                groups[output(words)].append(pid)
            now = {}
            for what, pids in groups.items():
                for at, first in enumerate(sorted(pids)):
                    for second in sorted(pids)[at + 1 :]:
                        if computing[first] and computing[second]:
                            pair = (first, second)
                            now[pair] = together.get(pair, (_cpu(first), _cpu(second)))
                            self._judge(what, pair, now[pair])
                        elif computing[first] or computing[second]:
                            self.waits.add((what, first if computing[second] else second))
            together = now

    def _judge(self, what: str, pair: tuple[int, int], before: tuple[float, float]) -> None:
        used = [_cpu(pid) - start for pid, start in zip(pair, before, strict=True)]
        if min(used) >= OVERLAP:
            self.doubles[what] = f"{pair} both computed, {used} s"
        if both := _writes(pair[0]) & _writes(pair[1]):
            self.doubles[what] = f"{pair} both wrote {both} at {time.strftime('%H:%M:%S')}"
