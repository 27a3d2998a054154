"""What every benchmark and study prints and keeps: `name value` lines, hardware and versions."""

import argparse
import datetime
import os
import platform
import re
import sys
from pathlib import Path

from mamushi.io.digests import versions

ROOT = Path(__file__).parents[2]


def results_folder() -> Path:
    """Return where the program keeps its results: the folder ``results`` beside it, or its own."""
    folder = Path(sys.argv[0]).resolve().parent
    return folder / "results" if (folder / "results").is_dir() else folder


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return the command line of a program, described by the first paragraph of its module; its
    option ``--results`` says where the report goes."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--results", type=Path, default=results_folder(), help="the folder to write to"
    )
    return parser


def command_line() -> str:
    """Return the command that started the program, as it is given at the root of the clone."""
    path = Path(sys.argv[0]).resolve()
    if path.is_relative_to(ROOT):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        return " ".join(["python -m", module, *sys.argv[1:]])
    return " ".join(sys.argv)


class Report:
    """The numbers of one run of the program ``name``."""

    def __init__(self, name: str, gpu: str | None = None, threads: int | None = None) -> None:
        processor = platform.processor() or platform.machine()
        self.name, self.machine = name, gpu or f"{processor} {os.cpu_count()} cores"
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        origin = {
            "command": command_line(),
            "date": datetime.date.today().isoformat(),
            "hardware": self.machine,
            "memory_gib": round(memory / 2**30, 1),
            "threads": threads,
            **versions(),
        }
        self.lines = [f"# {key} {value}" for key, value in origin.items() if value is not None]
        print("\n".join(self.lines), flush=True)

    def value(self, name: str, number: float | str) -> None:
        """Print and keep one number, to four significant digits."""
        shown = f"{number:.4g}" if isinstance(number, float) else str(number)
        self.lines.append(f"{name} {shown}")
        print(self.lines[-1], flush=True)

    def write(self, folder: Path | None = None) -> Path:
        """Write the dated file; a later run of the same day and hardware replaces it."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.machine.lower()).strip("-")
        file = f"{self.name}-{datetime.date.today().isoformat()}-{slug}.txt"
        path = (folder or results_folder()) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path
