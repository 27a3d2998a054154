"""What every benchmark prints and keeps: `name value` lines, with the hardware and the versions."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
from pathlib import Path

from mamushi.io.provenance import versions
from mamushi.running.machine import cores, processor

RESULTS = Path(__file__).parent / "results"


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return the command line of a benchmark, described by the first paragraph of its module; its
    option ``--results`` says where the report goes."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write to")
    return parser


class Report:
    """The numbers of one run of the benchmark ``name``."""

    def __init__(self, name: str, gpu: str | None = None, threads: int | None = None) -> None:
        self.name, self.machine = name, gpu or f"{processor()} {cores()} cores"
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        about = {
            "command": " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]]),
            "date": datetime.date.today().isoformat(),
            "hardware": self.machine,
            "memory_gib": round(memory / 2**30, 1),
            "threads": threads,
            **versions(),
        }
        self.lines = [f"# {key} {value}" for key, value in about.items() if value is not None]
        print("\n".join(self.lines), flush=True)

    def value(self, name: str, number: float | str) -> None:
        """Print and keep one number, to four significant digits."""
        shown = f"{number:.4g}" if isinstance(number, float) else str(number)
        self.lines.append(f"{name} {shown}")
        print(self.lines[-1], flush=True)

    def write(self, folder: Path = RESULTS) -> Path:
        """The dated file; a later run of the same day and hardware replaces it."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.machine.lower()).strip("-")
        path = folder / f"{self.name}-{datetime.date.today().isoformat()}-{slug}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path
