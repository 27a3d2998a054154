"""What a run would take, before it: jobs by rule, GPU-hours, memory, and the disk of models.

It plans what `mamushi run` would do with the same TARGETS, profile and configuration, and computes
nothing. What jobs of the kind have taken in this folder goes before what is calculated; of what
neither tells, it gives no time. What follows `--` goes to Snakemake, of which this is a dry run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.running import leases
from mamushi_runs import hooks
from mamushi_runs.commands import _run
from mamushi_runs.commands._bill import Bill, Job
from mamushi_runs.commands._rates import GPUS, gpu_key, gpu_rate

GROUP = "check"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the plan, and Snakemake's."""
    gpu = f"the GPU to count with: {', '.join(GPUS)} (default: the profile's, else h100)"
    parser.add_argument("--gpu", help=gpu)
    place = "where it is to run: see mamushi run (default: gpu, if mine.yaml is here)"
    parser.add_argument("--profile", help=place)
    _run.configfile(parser)
    _as_json.argument(parser)
    words = "what would be made; after --: also options of Snakemake"
    parser.add_argument("snakemake", nargs="*", metavar="TARGET", help=words)


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0. Raises ``UserError`` when the dry run fails."""
    rate = gpu_rate(args.gpu) if args.gpu else None
    words = _run.completed(args.snakemake, args.profile, args.configfile)
    with dry_run(words) as (workflow, config, on_cluster):
        jobs, model = read(workflow)
        rate = rate or gpu_rate(model if model and gpu_key(model) else None)
        usable = config["execution"]["device"] != "cpu" and bool(leases.visible())
        plan = reckon(jobs, Bill(config, rate, gpus=on_cluster or bool(args.gpu) or usable))
    _as_json.put(plan)
    print(text(plan))
    return 0


@contextlib.contextmanager
def dry_run(words: Sequence[str]) -> Iterator[tuple[Any, Mapping[str, Any], bool]]:
    """Give the workflow that Snakemake would run with these arguments, its configuration, and
    whether that would be on a cluster; within the block, the working folder is that of the run.
    Raises ``UserError`` when the dry run fails, after its words on standard error."""
    from snakemake import cli

    before, output = os.getcwd(), io.StringIO()
    hooks.parsed.clear()
    succeeded, executor = False, None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            parser, args = cli.parse_args([*words, "--dry-run", "--quiet", "rules", "progress"])
            _run.check_files("--configfile", args.configfile or ())
            executor, args.cores = args.executor, args.cores or os.cpu_count()
            succeeded = bool(cli.args_to_api(args, parser))
        except SystemExit:
            pass
        except UserError:
            raise
        except Exception as error:
            # As Snakemake's own command does.
            cli.print_exception(error)
    if not succeeded:
        # Its usage, which it prints before it names a wrong option, is long.
        print(*output.getvalue().splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UserError("the dry run failed", do="see what Snakemake said above")
    if not hooks.parsed:
        raise UserError("this workflow does not include Mamushi's", where="--snakefile")
    parsed, config, folder = hooks.parsed[-1]
    os.chdir(folder)
    try:
        yield parsed, config, executor not in (None, "local")
    finally:
        os.chdir(before)


def read(workflow: Any) -> tuple[list[Job], str | None]:
    """Return the jobs of ``workflow`` (Snakemake's) that are to be done, and the GPU that the
    profile asks for. What depends on rule and model is asked for once."""
    from snakemake.io import strip_wildcard_constraints

    shared: dict[tuple[str, str | None], dict[str, Any]] = {}
    jobs, gpu_model = [], None
    for job in workflow.dag.needrun_jobs():
        wildcards = dict(job.wildcards_dict)
        if (key := (job.rule.name, wildcards.get("model"))) not in shared:
            gpu_model = gpu_model or job.resources.get("gpu_model")
            gpus, memory = (job.resources.get(name, 0) for name in ("gpu", "mem_mb"))
            shared[key] = {
                "log": next(map(strip_wildcard_constraints, job.rule.log), None),
                "gpus": int(gpus) if isinstance(gpus, int) else 0,
                "memory_mb": float(memory) if isinstance(memory, int | float) else 0.0,
            }
        if not job.is_norun:
            jobs.append(Job(job.rule.name, wildcards, **shared[key]))
    return jobs, gpu_model if isinstance(gpu_model, str) else None


def reckon(jobs: Sequence[Job], bill: Bill) -> dict[str, Any]:
    """Return what jobs take, as JSON can hold it: in all, and by rule. Seconds and bytes; memory in
    MB; ``unknown`` are jobs of which no time is given."""
    rules: dict[str, dict[str, Any]] = {}
    disk = [0.0, 0.0, 0.0]
    for job in jobs:
        estimate, written = bill.estimate(job), bill.written(job)
        seconds = estimate.seconds or 0.0
        disk = [disk[0] + written[0], disk[1] + written[1], max(disk[2], written[2])]
        counts = {"jobs": 1, "unknown": estimate.seconds is None, "wall_seconds": seconds}
        counts |= {"gpu_seconds": seconds * job.gpus * bill.gpus}
        counts |= {"cpu_seconds": estimate.cpu_seconds}
        entry = rules.setdefault(job.rule, {"memory_mb": 0.0, "sources": Counter()})
        entry |= {name: entry.get(name, 0) + n for name, n in counts.items()}
        entry["memory_mb"] = max(entry["memory_mb"], job.memory_mb)
        entry["sources"][estimate.source] += 1
    models = sorted({job.wildcards.get("model", "") for job in jobs} & {*bill.config["models"]})
    sizes = {name: bill.size(name) for name in models}
    return {
        **{
            name: sum(entry[name] for entry in rules.values())
            for name in ("jobs", "unknown", "gpu_seconds", "cpu_seconds")
        },
        "disk": {"end": disk[0], "kept": disk[1], "checkpoint": disk[2]},
        **{"rate": bill.rate.source, "rules": rules},
        "models": [f"{name}: {s.billions:.3g} billion, {s.source}" for name, s in sizes.items()],
    }


def text(plan: Mapping[str, Any]) -> str:
    """Return a plan for people: by rule, the totals, and what they are from."""
    if not plan["jobs"]:
        return "Nothing to be done."
    rows: list[tuple[str, ...]] = [("rule", "jobs", "GPU", "CPU", "a job", "memory", "from")]
    for rule, entry in sorted(plan["rules"].items(), key=lambda item: -item[1]["wall_seconds"]):
        a_job = entry["wall_seconds"] / entry["jobs"]
        times = map(clock, (entry["gpu_seconds"], entry["cpu_seconds"], a_job))
        memory = f"{entry['memory_mb'] / 1000:.1f} GB"
        rows.append((rule, f"{entry['jobs']:,}", *times, memory, ", ".join(entry["sources"])))
    totals = (clock(plan[name]) for name in ("gpu_seconds", "cpu_seconds"))
    rows.append(("all", f"{plan['jobs']:,}", *totals, "", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(widths) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    end, kept, state = (f"{plan['disk'][name] / 1e9:,.1f} GB" for name in plan["disk"])
    return "\n".join(
        [
            *lines,
            "",
            f"No time is given for {plan['unknown']:,} jobs: none of their kind has finished here.",
            f"Disk of models: {end}, with keep_checkpoints {kept} more; a checkpoint {state}.",
            *plan["models"],
            f"FLOP: of the texts' real tokens, without padding; {plan['rate']}.",
        ]
    )


def clock(seconds: float) -> str:
    """Return a time in the unit that suits it: ``-``, ``8.0 s``, ``12 min``, ``1,530 h``."""
    if not seconds:
        return "-"
    unit, size = ("s", 1) if seconds < 99.5 else ("min", 60) if seconds < 5970 else ("h", 3600)
    return f"{seconds / size:,.{0 if seconds / size >= 9.95 else 1}f} {unit}"
