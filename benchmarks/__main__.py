"""Time the software: fine-tuning, and the workflow as it grows.

    python -m benchmarks                      # all at a small size, on one thread: make bench
    python -m benchmarks scale --texts 20000  # one of them, with options of its own
    python -m benchmarks gpu_check            # five minutes on a GPU: make gpu-check

Each prints `name value` lines and keeps them, dated, in benchmarks/results. What counts are ratios:
variants take turns in one process, on one thread, and the medians of their CPU time are compared.
pytest-benchmark and asv time single functions by the wall, and do neither.
"""

import os
import runpy
import subprocess
import sys

SMALL = ("finetune", "scale")
BY_NAME = (*SMALL, "gpu_check")


def main() -> None:
    """Run the benchmark that the command line names, or all small ones one after the other."""
    match sys.argv[1:]:
        case []:
            environment = {"OMP_NUM_THREADS": "1", **os.environ}
            for name in SMALL:
                subprocess.run(
                    [sys.executable, "-m", "benchmarks", name], env=environment, check=True
                )
        case [name, *options] if name in BY_NAME:
            sys.argv = [name, *options]
            runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
        case _:
            sys.exit(f"{__doc__}\nBenchmarks: {', '.join(BY_NAME)}")


if __name__ == "__main__":
    main()
