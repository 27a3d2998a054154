"""What a run would take, before it: jobs, GPU and processor hours, wall time, memory, disk.

It plans what `mamushi run` would do with the same TARGETS, profile and configuration, and computes
nothing. What follows `--` goes to Snakemake, of which this makes a dry run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.files import check_writable, write_json
from mamushi_runs import hooks, targets, workflow
from mamushi_runs.forecast import rates
from mamushi_runs.forecast.forecast import CORES, QUEUE, Cluster, clock, forecast, read, size

GROUP = "check"
CLUSTER_CORES = 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the plan, and Snakemake's."""
    names = ", ".join(rates.GPUS)
    parser.add_argument(
        "--gpu", help=f"the GPU to count with: {names} (default: the profile's, else h100)"
    )
    parser.add_argument("--gpus", type=int, help="GPUs at a time (default: the profile's)")
    about = "where it is to run: see mamushi run (default: gpu, if mine.yaml is here)"
    parser.add_argument("--profile", help=about)
    workflow.configfile(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the plan there as well")
    about = "what would be made; after --: also options of Snakemake"
    parser.add_argument("snakemake", nargs="*", metavar="TARGET", help=about)


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0. Raises ``UserError`` when the dry run fails."""
    rate = rates.rate(args.gpu) if args.gpu else None
    if args.gpus is not None and args.gpus < 1:
        raise UserError(f"{args.gpus} is no number of GPUs", where="--gpus", do="give 1 or more")
    if args.json:
        workflow.check_ending(args.json, ".json")
        check_writable(args.json)
    words = workflow.completed(args.snakemake, args.profile, args.configfile)
    with dry_run(words) as (planned, config, cluster):
        found = forecast(read(planned, cluster, args.gpus), config, rate)
    if args.json:
        write_json(args.json, found)
    print(text(found))
    return 0


@contextlib.contextmanager
def dry_run(words: Sequence[str]) -> Iterator[tuple[Any, Mapping[str, Any], Cluster | None]]:
    """Give the workflow that Snakemake would run with these arguments, its configuration, and what
    it may use of a cluster; within the block, the working folder is that of the run. Raises
    ``UserError`` when the dry run fails, after its words on standard error."""
    before = os.getcwd()
    hooks.parsed.clear()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        succeeded, cluster, wanted = _snakemake(
            [*words, "--dry-run", "--quiet", "rules", "progress"]
        )
    if not succeeded and hooks.parsed:
        targets.check_all(hooks.parsed[-1][0], wanted)
    if not succeeded:
        # Its usage, which it prints before it names a wrong option, is long.
        print(*said.getvalue().splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UserError("the dry run failed", do="see what Snakemake said above")
    if not hooks.parsed:
        raise UserError("this workflow does not include Mamushi's", where="--snakefile")
    parsed, config, folder = hooks.parsed[-1]
    os.chdir(folder)
    try:
        yield parsed, config, cluster
    finally:
        os.chdir(before)


def _snakemake(words: list[str]) -> tuple[bool, Cluster | None, list[str]]:
    """Run Snakemake in this process. Return whether it succeeded, else it has said why; where the
    jobs would have run, which a dry run leaves out; and its targets."""
    from snakemake import cli
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    cluster = None
    try:
        parser, args = cli.parse_args(words)
    except SystemExit:
        return False, None, []
    targets.check_files("--configfile", args.configfile or ())
    try:
        executor = ExecutorPluginRegistry().get_plugin(args.executor or "local")
        if not executor.common_settings.local_exec:
            cluster = args.jobs, args.local_cores
            # A dry run takes 1 core, and would scale all threads down to it.
            args.cores = args.cores or CLUSTER_CORES
        return bool(cli.args_to_api(args, parser)), cluster, args.targets
    except SystemExit:
        pass
    except Exception as error:
        # As Snakemake's own command does.
        cli.print_exception(error)
    return False, cluster, args.targets


def text(found: Mapping[str, Any]) -> str:
    """Return a forecast for people: by rule, the totals, and what they are from."""
    if not found["jobs"]:
        return "Nothing to be done."
    rows: list[tuple[str, ...]] = [("rule", "jobs", "GPU", "CPU", "a job", "memory", "from")]
    rules = found["rules"].items()
    for rule, entry in sorted(rules, key=lambda item: -item[1]["wall_seconds"]):
        seconds = (
            entry["gpu_seconds"],
            entry["cpu_seconds"],
            entry["wall_seconds"] / entry["jobs"],
        )
        memory, sources = size(entry["memory_mb"] * 1e6), ", ".join(entry["sources"])
        rows.append((rule, f"{entry['jobs']:,}", *map(clock, seconds), memory, sources))
    totals = (clock(found[name]) for name in ("gpu_seconds", "cpu_seconds"))
    rows.append(("all, with Snakemake", f"{found['jobs']:,}", *totals, "", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    lines = [
        "  ".join(
            f"{cell:{'<' if place in (0, last) else '>'}{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    disk, (name, limit) = found["disk"], found["bound"]
    words = {CORES: "cores", QUEUE: "jobs in the queue", "gpu": "GPUs at a time"}
    bound = f"{limit} {words.get(name, name)}" if limit else "the longest chain of jobs"
    cpu = f"{rates.CPU['name']}, {rates.CPU['measured']}"
    lines += [
        "",
        f"Wall time: at least {clock(found['wall_seconds'])}, bound by {bound}; "
        f"the longest chain of jobs takes {clock(found['critical_seconds'])}.",
        f"Memory: {size(found['memory_mb'] * 1e6)} requested, of the largest job.",
        f"Disk: {size(disk['end'])} at the end, with keep_checkpoints {size(disk['end_kept'])}; "
        f"up to {size(disk['running'])} more meanwhile, for the checkpoints of running jobs.",
        *found["about"],
        f"FLOP: of the texts' real tokens, without padding; {found['rate']}.",
        f"On a CPU core: rates measured on {cpu}. Assumed: no measurement stands behind it.",
    ]
    more = ["More jobs follow once the sweeps of unlearning are known."] if found["more"] else []
    return "\n".join([*lines, *more])
