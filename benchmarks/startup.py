"""How long a stage's command takes to start.

    python -m benchmarks startup

`help_seconds_*` is the wall time of `python -m mamushi STAGE --help`, the median of some runs, and
`help_cpu_seconds_*` its CPU time; the slowest stage is told at the end. `import_seconds_*` is the
wall time of importing what a stage imports once it runs, the interpreter's own start and end
included, and `import_cpu_seconds_*` its CPU time. `torch` and `transformers` are the libraries
alone, below which no stage with a language model can be.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

from mamushi.running.stage import stages
from studies.lib.report import Report

IMPORTS = {
    "torch": "torch",
    "transformers": "transformers.modeling_utils",
    "tables": "mamushi.io.tables",
    "selection": "mamushi.selection.pool",
    "training": "mamushi.lm.training",
    "unlearning": "mamushi.unlearning.loop",
}


def taken(*command: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    report = Report("startup")
    slowest = ("", 0.0, 0.0)
    for stage in sorted(stages()):
        runs = [taken("-m", "mamushi", stage, "--help") for _ in range(args.runs)]
        wall, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        report.value(f"help_seconds_{stage}", wall)
        report.value(f"help_cpu_seconds_{stage}", cpu)
        slowest = max(slowest, (stage, wall, cpu), key=lambda entry: entry[1])
    for name, module in IMPORTS.items():
        # As a command does it, with what that sets for all that follows.
        program = f"from mamushi.__main__ import gc; import {module}; gc.freeze()"
        runs = [taken("-c", program) for _ in range(args.runs)]
        wall, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        report.value(f"import_seconds_{name}", wall)
        report.value(f"import_cpu_seconds_{name}", cpu)
    report.value("slowest_stage", slowest[0])
    report.value("help_seconds_slowest", slowest[1])
    report.write()


if __name__ == "__main__":
    main()
