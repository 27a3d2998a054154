"""What a run would take, before it: jobs, GPU and processor hours, wall time, memory, disk.

It makes a dry run of Snakemake with the arguments after `--`, so that targets, profiles and all
else mean what they mean there, and computes nothing. What past runs of the same rules and models
took is read from results/benchmarks; the rest is counted in floating-point operations.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.artifacts.files import write_json
from mamushi.errors import UserError
from mamushi_runs import hooks
from mamushi_runs.forecast import account, graph, rates, text
from mamushi_runs.forecast.graph import Graph

CLUSTER_CORES = 1024
LINES = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the plan, and Snakemake's."""
    names = ", ".join(rates.table()["gpus"])
    parser.add_argument(
        "--gpu", help=f"the GPU to count with: {names} (default: the profile's, else h100)"
    )
    parser.add_argument("--gpus", type=_whole, help="GPUs at a time (default: the profile's)")
    parser.add_argument(
        "--share",
        type=float,
        help="share of the GPU's peak that a fine-tune reaches (default: the paper's, 0.266)",
    )
    parser.add_argument(
        "--padded",
        action="store_true",
        help="texts count as long as a trainer of another make would pad them",
    )
    parser.add_argument(
        "--no-benchmarks", action="store_true", help="take no notice of past runs: only count"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the plan there as well")
    parser.add_argument(
        "snakemake", nargs="*", help="after --: Snakemake's targets and options, as in the run"
    )


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 0. Raises ``UserError`` when the dry run fails."""
    rates.rate(args.gpu, args.share)
    with dry_run(args.snakemake) as (jobs, config):
        made = account.expected(
            jobs if args.gpus is None else graph.with_gpus(jobs, args.gpus),
            config,
            gpu=args.gpu,
            share=args.share,
            padded=args.padded or None,
            past=not args.no_benchmarks,
        )
    if args.json:
        write_json(args.json, made)
    print(text.plan(made))
    return 0


@contextlib.contextmanager
def dry_run(words: Sequence[str]) -> Iterator[tuple[Graph, Mapping[str, Any]]]:
    """The jobs that Snakemake would run with these arguments, and the configuration; within the
    block, the working folder is that of the run.

    Raises ``UserError`` when the dry run fails, after what it said on standard error.
    """
    before = os.getcwd()
    hooks.parsed.clear()
    with tempfile.TemporaryFile("w+b") as said:
        with _redirected(said.fileno()):
            asked = _snakemake([*words, "--dry-run", "--quiet", "rules", "progress"])
        if asked is None:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").splitlines()
            # Its usage, which it prints before it names a wrong option, is long.
            print(*lines[-LINES:], sep="\n", file=sys.stderr)
            raise UserError("the dry run failed", do="see what Snakemake said above")
    if not hooks.parsed:
        raise UserError("this workflow does not include Mamushi's", where="--snakefile")
    workflow, config, folder = hooks.parsed[-1]
    jobs = graph.read(workflow)
    if asked.cluster:
        jobs = graph.on_cluster(jobs, graph.whole(asked.jobs), asked.local_cores)
    os.chdir(folder)
    try:
        yield jobs, config
    finally:
        os.chdir(before)


class _Asked(NamedTuple):
    """What a dry run leaves out: where the jobs would have run."""

    cluster: bool
    jobs: int | None
    local_cores: int | None


def _snakemake(words: list[str]) -> _Asked | None:
    """Run Snakemake in this process; None when it fails, after it has said why."""
    from snakemake import cli
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    try:
        parser, args = cli.parse_args(words)
        executor = ExecutorPluginRegistry().get_plugin(args.executor or "local")
        cluster = not executor.common_settings.local_exec
        asked = _Asked(cluster, args.jobs, args.local_cores)
        if cluster and args.cores is None:
            # A dry run takes 1, and would scale all threads down to it.
            args.cores = CLUSTER_CORES
        return asked if cli.args_to_api(args, parser) else None
    except SystemExit:
        return None
    except Exception as error:
        # As Snakemake's own command does.
        cli.print_exception(error)
        return None


@contextlib.contextmanager
def _redirected(target: int) -> Iterator[None]:
    """Within the block, whatever is printed, also by other processes, goes to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(target, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def _whole(value: str) -> int:
    count = int(value)
    if count < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return count
