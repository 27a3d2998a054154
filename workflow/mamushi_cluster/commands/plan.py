"""What a run would take, before it: jobs by rule, GPU-hours, memory, and the disk of models."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mamushi.errors import UserError
from mamushi.io.files import read_json
from mamushi_cluster import hooks
from mamushi_cluster.commands import _run
from mamushi_cluster.forecast import TRAINING, UNLEARNING, Job, estimate, model_size

JOB = re.compile(r"^ *(?:local)?rule (\w+):\n((?: +\w+: .*\n)+)", re.MULTILINE)
"""A job, and its properties, as Snakemake prints them."""
STAYS = ("endpoint", "unlearn_list")
"""Rules whose model is not deleted."""
COLUMNS = {
    **{"jobs": "sum", "unknown": "sum", "seconds": "mean", "gpu_hours": "sum"},
    **{"memory_gb": "max", "disk_gb": "sum", "source": lambda texts: ", ".join(texts.unique())},
}
"""Of the plan's table, and how a rule's jobs make one row of it."""


def run(
    *targets: str, configfile: _run.Files = None, how: _run.How = _run.How()
) -> tuple[int, Any]:
    """Print the plan. Raises ``UserError`` as ``_run.run_configs``, and if the dry run fails, after
    its words on standard error.

    :param targets: What would be made, else all.
    """
    how = replace(how, dry_run=True, snakemake_args=f"{how.snakemake_args} --quiet reason")
    line = [sys.executable, "-P", "-m", "snakemake"]
    line += _run.snakemake_words(targets, _run.run_configs(configfile, how.profile), how)
    with tempfile.NamedTemporaryFile() as file:
        environment = os.environ | {hooks.CONFIG_TO: file.name}
        words: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(line, check=False, env=environment, **words)
        if done.returncode:
            if ours := re.search(r"^ *WorkflowError:\n *(.+)$", done.stdout, re.MULTILINE):
                raise UserError(ours[1])
            print(done.stdout.strip(), file=sys.stderr)
            raise UserError("the dry run failed", do="see what Snakemake said above")
        config = read_json(file.name)
    jobs = parse_jobs(done.stdout, has_gpus=config["execution"]["device"] != "cpu")
    plan = sum_jobs(jobs, config)
    print(plan_text(plan))
    return 0, plan


def parse_jobs(said: str, *, has_gpus: bool) -> list[Job]:
    """Return the jobs that a dry run of Snakemake printed, without targets, which have no log."""
    jobs = []
    for rule, lines in JOB.findall(said):
        about = dict(line.strip().split(": ", 1) for line in lines.splitlines())
        wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", about.get("wildcards", "")))
        sizes = dict(re.findall(r"(gpu|mem_mb)=(\d+)", about["resources"]))
        gpus, memory_mb = int(sizes.get("gpu", 0)) * has_gpus, int(sizes.get("mem_mb", 0))
        if "log" in about:
            jobs.append(Job(rule, wildcards, about["log"], gpus, memory_mb))
    return jobs


def sum_jobs(jobs: Sequence[Job], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what jobs take, as JSON can hold it: hours of GPUs, GB of the models on disk and, by
    rule, a job's seconds and GB of memory. ``unknown`` are jobs of which no time is given."""
    import pandas as pd

    rows, stays = [], (*TRAINING, *UNLEARNING) if config["keep_checkpoints"] else STAYS
    for job in jobs:
        name, (seconds, source) = job.wildcards.get("model", ""), estimate(config, job)
        disk_gb = 0.0
        if job.rule in stays:
            disk_gb = 4e-9 * model_size(config, name).n_trained(config["models"][name]["training"])
        hours, memory_gb = (seconds or 0.0) * job.gpus / 3600, job.memory_mb / 1000
        rows.append((job.rule, 1, int(seconds is None), seconds, hours, memory_gb, disk_gb, source))
    table = pd.DataFrame(rows, columns=["rule", *COLUMNS]).astype({"seconds": float})
    rules = table.groupby("rule").agg(COLUMNS).sort_values("gpu_hours", ascending=False)
    sums = rules[["jobs", "unknown", "gpu_hours", "disk_gb"]].astype(object).sum()
    models = sorted({job.wildcards.get("model", "") for job in jobs} & {*config["models"]})
    sizes = {name: model_size(config, name) for name in models}
    return {
        **sums,
        "models": [f"{name}: {s.parameters:,} parameters, {s.source}" for name, s in sizes.items()],
        "rules": rules.astype(object).where(rules.notna(), None).to_dict("index"),
    }


def plan_text(plan: Mapping[str, Any]) -> str:
    """Return a plan for people: by rule, the totals, and what they are from."""
    import pandas as pd

    if not plan["jobs"]:
        return "Nothing to be done."
    rules = pd.DataFrame.from_dict(plan["rules"], orient="index").fillna("-")
    said = [
        "{jobs:,} jobs, {gpu_hours:,.1f} GPU hours, models of {disk_gb:,.1f} GB. No time is given "
        "for {unknown:,} jobs, of whose kind none has finished here.".format(**plan),
        *plan["models"],
        "FLOP: of real tokens on an H100, at the share of its peak that the paper had.",
    ]
    return "\n".join([rules.to_string(float_format="{:,.1f}".format), *said])
