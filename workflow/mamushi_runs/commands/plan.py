"""What a run would take, before it: jobs, GPU and processor hours, wall time, memory, disk.

It makes a dry run of Snakemake with the arguments after `--`, so that targets, profiles and all
else mean what they mean there, and computes nothing. What past runs of the same rules and models
took is read from results/benchmarks; the rest is counted in floating-point operations.
"""

from mamushi_runs.forecast.plan import arguments, run

GROUP = "check"

__all__ = ["GROUP", "arguments", "run"]
