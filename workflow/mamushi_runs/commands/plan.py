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
from mamushi_runs.forecast import TRAINING, UNLEARNING, Job, estimate
from mamushi_runs.sizes import model_size

STAYS = ("contaminate", "gold", "beta0", "unlearn_list")
"""Rules whose model is not deleted."""
SUMS = ("jobs", "unknown", "gpu_hours", "disk_gb")
COLUMNS = {
    **{"jobs": "sum", "unknown": "sum", "seconds": "mean", "gpu_hours": "sum"},
    **{"memory_gb": "max", "disk_gb": "sum", "source": lambda texts: ", ".join(texts.unique())},
}
"""Of the plan's table, and of a rule's jobs what each holds."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    _run.of_targets(parser, "what would be made")


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0. Raises ``UserError`` as ``_run.required``, and when the dry run
    fails, after its words on standard error."""
    from snakemake import cli

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
    on_cluster = _run.sets(_run.profile(args.profile), "executor")
    has_gpus = config["execution"]["device"] != "cpu" and (on_cluster or leases.visible())
    jobs = [job if has_gpus else job._replace(gpus=0) for job in read(workflow)]
    plan = reckon(jobs, config)
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
        sizes = (asked.get(name) for name in ("gpu", "mem_mb"))
        log = next(map(strip_wildcard_constraints, job.rule.log), "")
        if not job.is_norun:
            numbers = (size if isinstance(size, int) else 0 for size in sizes)
            jobs.append(Job(job.rule.name, dict(job.wildcards_dict), log, *numbers))
    return jobs


def reckon(jobs: Sequence[Job], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what jobs take, as JSON can hold it: hours of GPUs, GB of the models on disk and, by
    rule, a job's seconds and GB of memory. ``unknown`` are jobs of which no time is given."""
    import pandas as pd

    rows = []
    for job in jobs:
        seconds, source = estimate(config, job)
        row = {"rule": job.rule, "jobs": 1, "seconds": seconds, "unknown": int(seconds is None)}
        row["gpu_hours"] = (seconds or 0.0) * job.gpus / 3600
        row |= {"memory_gb": job.memory_mb / 1000, "disk_gb": 0.0, "source": source}
        trains = job.rule in (*TRAINING, *UNLEARNING)
        if trains and (job.rule in STAYS or config["keep_checkpoints"]):
            model = job.wildcards["model"]
            trained = model_size(config, model).trained(config["models"][model]["training"])
            row["disk_gb"] = 4e-9 * trained
        rows.append(row)
    table = pd.DataFrame(rows, columns=["rule", *COLUMNS]).astype({"seconds": float})
    rules = table.groupby("rule").agg(COLUMNS).sort_values("gpu_hours", ascending=False)
    models = {job.wildcards.get("model", "") for job in jobs} & {*config["models"]}
    sizes = {name: model_size(config, name) for name in sorted(models)}
    return {
        **{name: sum(rules[name].tolist()) for name in SUMS},
        "models": [f"{name}: {s.parameters:,} parameters, {s.source}" for name, s in sizes.items()],
        "rules": rules.astype(object).where(rules.notna(), None).to_dict("index"),
    }


def text(plan: Mapping[str, Any]) -> str:
    """Return a plan for people: by rule, the totals, and what they are from."""
    import pandas as pd

    if not plan["jobs"]:
        return "Nothing to be done."
    rules = pd.DataFrame.from_dict(plan["rules"], orient="index").fillna("-")
    jobs, unknown, hours, disk = (plan[key] for key in SUMS)
    lines = (
        rules.to_string(float_format="{:,.1f}".format),
        f"{jobs:,} jobs, {hours:,.1f} GPU hours, models of {disk:,.1f} GB. No time is given for "
        f"{unknown:,} jobs, of whose kind none has finished here.",
        *plan["models"],
        "FLOP: of the texts' real tokens on an H100, at the share of its peak that the paper had.",
    )
    return "\n".join(lines)
