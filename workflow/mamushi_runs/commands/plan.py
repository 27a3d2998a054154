"""What a run would take, before it: jobs, GPU and processor hours, wall time, memory, disk.

It makes a dry run of Snakemake with the arguments after `--`, so that targets, profiles and all
else mean what they mean there, and computes nothing. What past runs of the same rules and models
took is read from their logs in results/logs; the rest is counted in floating-point operations.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.registry import tree
from mamushi_runs.forecast import plan
from mamushi_runs.forecast.plan import arguments

GROUP = "check"

__all__ = ["GROUP", "arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """As ``plan.run``, and with this workflow in a folder that has none of its own."""
    given = any(word.partition("=")[0] in ("-s", "--snakefile") for word in args.snakemake)
    if not given and not Path("Snakefile").is_file():
        args.snakemake = [*args.snakemake, "--snakefile", str(tree() / "Snakefile")]
    return plan.run(args)
