"""What a run would take, before it: jobs by rule, GPU-hours, memory, and the disk of models.

It plans what `mamushi run` would do with the same TARGETS, profile and configuration, and computes
nothing. What jobs of the kind have taken in this folder goes before what is calculated; of what
neither tells, it gives no time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.running import leases
from mamushi_runs import hooks
from mamushi_runs.commands import _run
from mamushi_runs.forecast import GPUS, TRAINING, UNLEARNING, Job, Rate, estimate, gpu_key, gpu_rate
from mamushi_runs.sizes import model_size

GROUP = "check"
STAYS = ("contaminate", "gold", "beta0", "unlearn_list")
"""Rules whose model is not deleted."""
NUMBERS = ("gpu", "mem_mb")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`, and the GPU."""
    _run.of_targets(parser, "what would be made")
    gpu = f"the GPU to count with: {', '.join(GPUS)} (default: the profile's, else h100)"
    parser.add_argument("--gpu", help=gpu)


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0. Raises ``UserError`` as ``_run.required``, and when the dry run
    fails, after its words on standard error."""
    from snakemake import cli

    rate = gpu_rate(args.gpu) if args.gpu else None
    # With just these, Snakemake does not go through the jobs.
    args.dry_run, args.snakemake_args = True, f"{args.snakemake_args} --quiet rules progress"
    line, said = _run.line(args.targets, _run.required(args), args), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            cli.main(line)
        except SystemExit as end:
            failed = bool(end.code)
    if failed:
        # Its usage, which it prints before it names a wrong option, is long.
        print(*said.getvalue().splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UserError("the dry run failed", do="see what Snakemake said above")
    workflow, config = hooks.parsed[-1]
    jobs, on_cluster = read(workflow), _run.sets(_run.profile(args.profile), "executor")
    has_gpus = config["execution"]["device"] != "cpu" and (on_cluster or leases.visible())
    if rate is None and has_gpus:
        rate = gpu_rate(next((job.gpu_model for job in jobs if gpu_key(job.gpu_model)), "h100"))
    plan = reckon(jobs, config, rate)
    _as_json.put(plan)
    print(text(plan))
    return 0


def read(workflow: Any) -> list[Job]:
    """Return the jobs of ``workflow`` (Snakemake's) that are to be done."""
    from snakemake.io import strip_wildcard_constraints

    jobs: list[Job] = []
    first: dict[tuple[Any, str | None], Any] = {}
    for job in workflow.dag.needrun_jobs():
        # What depends on rule and model is asked for once.
        asked = first.setdefault((job.rule, job.wildcards_dict.get("model")), job).resources
        # Others are words: what is not known before the job's inputs are there.
        gpus, memory = (n if isinstance(n := asked.get(name), int) else 0 for name in NUMBERS)
        log = next(map(strip_wildcard_constraints, job.rule.log), "")
        gpu = asked.get("gpu_model", "")
        if not job.is_norun:
            jobs.append(Job(job.rule.name, dict(job.wildcards_dict), log, gpus, memory, gpu))
    return jobs


def reckon(jobs: Sequence[Job], config: Mapping[str, Any], rate: Rate | None) -> dict[str, Any]:
    """Return what jobs take, as JSON can hold it: hours of GPUs, GB of the models on disk and, by
    rule, a job's seconds and GB of memory. ``unknown`` are jobs of which no time is given. Without
    a ``rate``, no GPU is used."""
    import pandas as pd

    rows = []
    for job in jobs:
        seconds, source = estimate(config, job, rate)
        hours = (seconds or 0.0) * job.gpus * (rate is not None) / 3600
        trains = job.rule in (*TRAINING, *UNLEARNING)
        disk = 0.0
        if trains and (job.rule in STAYS or config["keep_checkpoints"]):
            model = job.wildcards["model"]
            disk = 4e-9 * model_size(config, model).trained(config["models"][model]["training"])
        rows.append((job.rule, seconds, hours, job.memory_mb / 1000, disk, source))
    columns = ["rule", "seconds", "gpu_hours", "memory_gb", "disk_gb", "from"]
    table = pd.DataFrame(rows, columns=columns).astype({"seconds": float})
    by_rule = table.groupby("rule").agg(
        jobs=("rule", "size"),
        unknown=("seconds", lambda seconds: seconds.isna().sum()),
        seconds=("seconds", "mean"),
        gpu_hours=("gpu_hours", "sum"),
        memory_gb=("memory_gb", "max"),
        disk_gb=("disk_gb", "sum"),
        source=("from", lambda sources: ", ".join(sources.unique())),
    )
    by_rule = by_rule.sort_values("gpu_hours", ascending=False)
    totals = ("jobs", "unknown", "gpu_hours", "disk_gb")
    models = {job.wildcards.get("model", "") for job in jobs} & {*config["models"]}
    sizes = {name: model_size(config, name) for name in sorted(models)}
    return {
        **{name: sum(by_rule[name].tolist()) for name in totals},
        "rate": rate.source if rate else "no GPU",
        "models": [f"{name}: {s.parameters:,} parameters, {s.source}" for name, s in sizes.items()],
        "rules": by_rule.astype(object).where(by_rule.notna(), None).to_dict("index"),
    }


def text(plan: Mapping[str, Any]) -> str:
    """Return a plan for people: by rule, the totals, and what they are from."""
    import pandas as pd

    if not plan["jobs"]:
        return "Nothing to be done."
    rules = pd.DataFrame.from_dict(plan["rules"], orient="index").fillna("-")
    jobs, unknown, hours, disk = (plan[key] for key in ("jobs", "unknown", "gpu_hours", "disk_gb"))
    lines = (
        rules.to_string(float_format="{:,.1f}".format),
        f"{jobs:,} jobs, {hours:,.1f} GPU hours, models of {disk:,.1f} GB. No time is given for "
        f"{unknown:,} jobs, of whose kind none has finished here.",
        *plan["models"],
        f"FLOP: of the texts' real tokens, without padding; {plan['rate']}.",
    )
    return "\n".join(lines)
