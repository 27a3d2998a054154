"""What a run would take, before it: jobs, GPU and processor hours, wall time, memory, disk.

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
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io.files import check_writable, write_json
from mamushi.running import leases
from mamushi_runs import hooks
from mamushi_runs.commands import _run
from mamushi_runs.commands._bill import Bill, Job
from mamushi_runs.commands._rates import CPU, GPUS, gpu_key, gpu_rate
from mamushi_runs.failures import clock

GROUP = "check"
CORES, QUEUE = "_cores", "_nodes"
"""Snakemake's words for two of its resources."""
BEGIN_SECONDS, LOCAL_SECONDS, QUEUE_SECONDS = 10.0, 0.5, 40.0
"""Of Snakemake before the first job; of a core for each job; and of a job in an idle queue."""
CLUSTER_CORES = 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the plan, and Snakemake's."""
    gpu = f"the GPU to count with: {', '.join(GPUS)} (default: the profile's, else h100)"
    parser.add_argument("--gpu", help=gpu)
    parser.add_argument("--gpus", type=int, help="GPUs at a time (default: the profile's)")
    place = "where it is to run: see mamushi run (default: gpu, if mine.yaml is here)"
    parser.add_argument("--profile", help=place)
    _run.configfile(parser)
    json_text = "print JSON in the place of text; with FILE, write it there as well as the text"
    parser.add_argument("--json", nargs="?", type=Path, const=True, metavar="FILE", help=json_text)
    words = "what would be made; after --: also options of Snakemake"
    parser.add_argument("snakemake", nargs="*", metavar="TARGET", help=words)


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0. Raises ``UserError`` when the dry run fails."""
    rate = gpu_rate(args.gpu) if args.gpu else None
    if args.gpus is not None and args.gpus < 1:
        raise UserError(f"{args.gpus} is no number of GPUs", where="--gpus", do="give 1 or more")
    if args.json not in (None, True):
        _run.check_ending(args.json, ".json")
        check_writable(args.json)
    words = _run.completed(args.snakemake, args.profile, args.configfile)
    with dry_run(words) as (planned, config, cluster):
        jobs, limits, model = read(planned, cluster, args.gpus)
        rate = rate or gpu_rate(model if model and gpu_key(model) else None)
        usable = config["execution"]["device"] != "cpu" and bool(leases.visible())
        bill = Bill(config, rate, gpus=cluster is not None or bool(args.gpu) or usable)
        plan = reckon(jobs, limits, bill, cluster=cluster is not None)
    if args.json is True:
        _as_json.put(plan)
        return 0
    if args.json:
        write_json(args.json, plan)
    print(text(plan))
    return 0


@contextlib.contextmanager
def dry_run(words: Sequence[str]) -> Iterator[tuple[Any, Mapping[str, Any], Any]]:
    """Give the workflow that Snakemake would run with these arguments, its configuration, and the
    jobs at a time and local cores of a cluster, None on this machine; within the block, the working
    folder is that of the run. Raises ``UserError`` when the dry run fails, after its words on
    standard error."""
    before, output = os.getcwd(), io.StringIO()
    hooks.parsed.clear()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        succeeded, cluster = _snakemake([*words, "--dry-run", "--quiet", "rules", "progress"])
    if not succeeded:
        # Its usage, which it prints before it names a wrong option, is long.
        print(*output.getvalue().splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UserError("the dry run failed", do="see what Snakemake said above")
    if not hooks.parsed:
        raise UserError("this workflow does not include Mamushi's", where="--snakefile")
    parsed, config, folder = hooks.parsed[-1]
    os.chdir(folder)
    try:
        yield parsed, config, cluster
    finally:
        os.chdir(before)


def _snakemake(words: list[str]) -> tuple[bool, Any]:
    """Run Snakemake in this process. Return whether it succeeded, else it has said why; and where
    the jobs would have run, which a dry run leaves out."""
    from snakemake import cli
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    try:
        parser, args = cli.parse_args(words)
    except SystemExit:
        return False, None
    _run.check_files("--configfile", args.configfile or ())
    cluster = None
    try:
        executor = ExecutorPluginRegistry().get_plugin(args.executor or "local")
        if not executor.common_settings.local_exec:
            cluster = args.jobs, args.local_cores
            # A dry run takes 1 core, and would scale all threads down to it.
            args.cores = args.cores or CLUSTER_CORES
        return bool(cli.args_to_api(args, parser)), cluster
    except SystemExit:
        pass
    except Exception as error:
        # As Snakemake's own command does.
        cli.print_exception(error)
    return False, cluster


def read(
    workflow: Any, cluster: Any, gpus: int | None
) -> tuple[list[Job], dict[str, int], str | None]:
    """Return the jobs of ``workflow`` (Snakemake's) that are to be done, each after those that it
    needs; what of each resource may be in use at a time, with ``gpus`` in place of its own limit;
    and the GPU that the profile asks for. What depends on rule and model is asked for once."""
    limits = {name: getattr(n, "value", n) for name, n in workflow.global_resources.items()}
    if cluster is None:
        limits |= {CORES: limits.get(CORES) or 1, QUEUE: None}
    else:
        scopes = workflow.resource_scopes
        limits = {name: n for name, n in limits.items() if not scopes.is_local(name)}
        limits |= {CORES: cluster[1] or os.cpu_count(), QUEUE: cluster[0]}
    limits |= {} if gpus is None else {"gpu": gpus}
    # A large number stands for unlimited.
    limits = {name: n for name, n in limits.items() if isinstance(n, int) and n < sys.maxsize}
    dag, jobs = workflow.dag, []
    shared: dict[tuple[str, str | None], dict[str, Any]] = {}
    model: str | None = None
    todo = {job for job in dag.needrun_jobs() if not job.is_norun}
    order = [job for level in dag.toposorted(todo) for job in level]
    number = {job: place for place, job in enumerate(order)}
    for job in order:
        rule, wildcards = job.rule, dict(job.wildcards_dict)
        if (key := (rule.name, wildcards.get("model"))) not in shared:
            amounts = {name: n for name, n in job.resources.items() if isinstance(n, int | float)}
            model = model or job.resources.get("gpu_model")
            # Snakemake's own word, is_local(), depends on the executor: a dry run's is local.
            stays = rule.group is None and rule.name in workflow._localrules
            remote = cluster is not None and not stays
            amounts |= {CORES: 0, QUEUE: 1} if remote else {CORES: job.threads, QUEUE: 0}
            shared[key] = {
                "uses": {name: float(amounts.get(name, 0)) for name in limits},
                **{"gpus": int(amounts.get("gpu", 0)), "threads": int(job.threads)},
                **{"memory_mb": amounts.get("mem_mb", 0.0), "log": next(iter(rule.log), None)},
            }
        needs = tuple(number[before] for before in dag.dependencies[job] if before in number)
        outputs = tuple(map(str, job.output))
        jobs.append(Job(rule.name, wildcards, outputs, needs=needs, **shared[key]))
    return jobs, limits, model if isinstance(model, str) else None


def reckon(
    jobs: Sequence[Job], limits: Mapping[str, int], bill: Bill, *, cluster: bool = False
) -> dict[str, Any]:
    """Return what a run takes, as JSON can hold it: totals, and the same by rule. Seconds and
    bytes; memory in MB. Raises ``UserError`` where GPUs are needed and none is allowed."""
    if limits.get("gpu") == 0 and any(job.gpus for job in jobs):
        raise UserError("there are jobs that need a GPU", where="gpu: 0", do="allow 1 or more")
    rules: dict[str, dict[str, Any]] = {}
    chain: list[float] = []
    busy = dict.fromkeys(limits, 0.0)
    disk = [0.0, 0.0, 0.0]
    gpus: Counter[str] = Counter()
    for job in jobs:
        estimate = bill.estimate(job)
        seconds = estimate.seconds or 0.0
        wall = seconds + (QUEUE_SECONDS if cluster and not job.uses.get(CORES) else LOCAL_SECONDS)
        chain.append(wall + max((chain[before] for before in job.needs), default=0.0))
        for name, limit in limits.items():
            # A job that asks for more than there is takes all there is.
            busy[name] += wall * min(job.uses.get(name, 0.0) / limit, 1.0)
        stays, kept, state = bill.written(job)
        disk = [disk[0] + stays, disk[1] + kept, max(disk[2], state)]
        counts = {"jobs": 1, "unknown": estimate.seconds is None, "wall_seconds": seconds}
        counts |= {"gpu_seconds": seconds * job.gpus * bill.gpus}
        counts |= {"cpu_seconds": seconds * estimate.cores + LOCAL_SECONDS / 2}
        entry = rules.setdefault(job.rule, {"memory_mb": 0.0, "sources": Counter()})
        entry |= {name: entry.get(name, 0) + n for name, n in counts.items()}
        entry["memory_mb"] = max(entry["memory_mb"], job.memory_mb)
        entry["sources"][estimate.source] += 1
        if (model := job.wildcards.get("model", "")) in bill.config["models"]:
            gpus[model] = max(gpus[model], job.gpus)
    bounds = {"chain": max(chain, default=0.0), **busy}
    bound = max(bounds, key=bounds.__getitem__)
    # Training jobs hold a GPU each, on a cluster a place in the queue.
    places = [limits.get(name) for name in ("gpu", QUEUE if cluster else CORES)]
    width = min([len(jobs), *(place for place in places if place is not None)])
    totals = {
        name: sum(entry[name] for entry in rules.values())
        for name in ("jobs", "unknown", "gpu_seconds", "cpu_seconds")
    }
    return totals | {
        "wall_seconds": bounds[bound] + BEGIN_SECONDS * bool(jobs),
        "bound": [bound, limits.get(bound)],
        "critical_seconds": bounds["chain"],
        "memory_mb": max((entry["memory_mb"] for entry in rules.values()), default=0.0),
        "disk": {
            "end": disk[0] + disk[1] * bill.config["keep_checkpoints"],
            "end_kept": disk[0] + disk[1],
            # The last checkpoint of each running job, and the next while it is written.
            "running": 2 * width * disk[2],
        },
        **{"rate": bill.rate.source, "rules": rules},
        "models": [bill.describe(model, count) for model, count in sorted(gpus.items())],
    }


def text(plan: Mapping[str, Any]) -> str:
    """Return a plan for people: by rule, the totals, and what they are from."""
    if not plan["jobs"]:
        return "Nothing to be done."
    rows: list[tuple[str, ...]] = [("rule", "jobs", "GPU", "CPU", "a job", "memory", "from")]
    for rule, entry in sorted(plan["rules"].items(), key=lambda item: -item[1]["wall_seconds"]):
        a_job = entry["wall_seconds"] / entry["jobs"]
        times = map(clock, (entry["gpu_seconds"], entry["cpu_seconds"], a_job))
        rest = size(entry["memory_mb"] * 1e6), ", ".join(entry["sources"])
        rows.append((rule, f"{entry['jobs']:,}", *times, *rest))
    totals = (clock(plan[name]) for name in ("gpu_seconds", "cpu_seconds"))
    rows.append(("all, with Snakemake", f"{plan['jobs']:,}", *totals, "", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(widths) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    disk, (name, limit) = plan["disk"], plan["bound"]
    words = {CORES: "cores", QUEUE: "jobs in the queue", "gpu": "GPUs at a time"}
    bound = f"{limit} {words.get(name, name)}" if limit else "the longest chain of jobs"
    if plan["unknown"]:
        lines += [
            "",
            f"No time is given for {plan['unknown']:,} jobs, and the totals are without them: "
            "models that are not tiny, on a processor. Plan again when the first has finished.",
        ]
    lines += [
        "",
        f"Wall time: about {clock(plan['wall_seconds'])}, bound by {bound}; "
        f"the longest chain of jobs takes {clock(plan['critical_seconds'])}.",
        f"Memory: {size(plan['memory_mb'] * 1e6)} requested, of the largest job.",
        f"Disk: {size(disk['end'])} at the end, with keep_checkpoints {size(disk['end_kept'])}; "
        f"up to {size(disk['running'])} more meanwhile, for the checkpoints of running jobs.",
        *plan["models"],
        f"FLOP: of the texts' real tokens, without padding; {plan['rate']}.",
        f"On a CPU core: rates measured on {CPU['name']}, {CPU['measured']}.",
    ]
    return "\n".join(lines)


def size(count: float) -> str:
    """Return bytes in the unit that suits them: ``20 kB``, ``6.8 GB``, ``15.2 TB``."""
    for unit, divisor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= divisor:
            return f"{count / divisor:.1f} {unit}"
    return f"{count / 1e3:.0f} kB" if count else "-"
