"""Run the workflow on a real SLURM, and read what SLURM's queue and accounting say of its jobs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import yaml

from tests.support import workflow
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

PROFILE = ROOT / "profiles" / "slurm" / "profile.v9+.yaml"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
"""States after which SLURM does nothing more with a job."""
NAMES = {
    "account": ("MAMUSHI_SLURM_ACCOUNT", "cpu", "slurm_account"),
    "cpu_partition": ("MAMUSHI_SLURM_CPU_PARTITION", "cpu", "slurm_partition"),
    "gpu_partition": ("MAMUSHI_SLURM_GPU_PARTITION", "gpu", "slurm_partition"),
    "gpu_model": ("MAMUSHI_SLURM_GPU", "gpu", "gpu_model"),
}
"""Of a cluster's names the variables that change those of the profile, and where these stand."""


@dataclass(frozen=True)
class Cluster:
    """Names of a cluster, as in the profile's ``cluster``; None leaves the account to SLURM."""

    account: str | None
    cpu_partition: str
    gpu_partition: str
    gpu_model: str


def here() -> Cluster:
    """The profile's names, changed by the variables of ``NAMES``."""
    names = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))["cluster"]
    return Cluster(
        **{
            name: os.environ.get(variable, names[kind].get(key))
            for name, (variable, kind, key) in NAMES.items()
        }
    )


def missing() -> str | None:
    """Why nothing can be submitted or looked up here, or None where SLURM works."""
    programs = ("sbatch", "squeue", "scancel", "scontrol", "sacct")
    if absent := [name for name in programs if not shutil.which(name)]:
        return f"no SLURM here: {', '.join(absent)} not found"
    for line, sign in ((["scontrol", "ping"], " UP"), (["sacct", "-n"], "")):
        done = subprocess.run(["timeout", "30", *line], capture_output=True, text=True, check=False)
        if done.returncode or sign not in done.stdout:
            return f"{line[0]} does not answer: {(done.stdout + done.stderr).strip()}"
    return None


def write_profile(folder: Path, settings: Mapping[str, Any]) -> Path:
    """The profile profiles/slurm with the names of ``here``, asked for its jobs every second.

    ``settings`` replace or add keys of the profile; None removes one. ``set-resources`` are added
    to the rules' own. Returns the folder that ``--profile`` takes.
    """
    profile, cluster = yaml.safe_load(PROFILE.read_text(encoding="utf-8")), here()
    gpu = {"slurm_partition": cluster.gpu_partition, "gpu_model": cluster.gpu_model}
    for resources in profile["set-resources"].values():
        resources.update({key: gpu[key] for key in gpu.keys() & resources.keys()})
    profile["default-resources"]["slurm_partition"] = cluster.cpu_partition
    if cluster.account is not None:
        profile["default-resources"]["slurm_account"] = cluster.account
    profile |= {"slurm-init-seconds-before-status-checks": 1, "max-status-checks-per-second": 1}
    profile["latency-wait"] = 10
    for rule, resources in settings.get("set-resources", {}).items():
        profile["set-resources"].setdefault(rule, {}).update(resources)
    profile |= {key: value for key, value in settings.items() if key != "set-resources"}
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in profile.items() if key != "cluster" and value is not None}
    (folder / PROFILE.name).write_text(yaml.safe_dump(kept), encoding="utf-8")
    return folder


def run(*args: str | Path, directory: Path, config: Mapping[str, Any]) -> None:
    """Run the workflow on SLURM to its end, as ``start``, ``polled``. It must succeed."""
    with (directory / "said").open("w+", encoding="utf-8") as output:
        options: dict[str, Any] = {"output": output, "config": config, "polled": True}
        status = start(*args, directory=directory, **options).wait(1200)
        output.seek(0)
        assert status == 0, output.read()


def start(
    *args: str | Path,
    directory: Path,
    output: IO[str],
    config: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    polled: bool = False,
) -> subprocess.Popen[str]:
    """Start the workflow on SLURM with targets and options ``args``, in a session of its own, so
    that a test can signal all of it.

    ``config`` is laid over the repository's config.yaml, ``settings`` over its profile; see
    ``write_profile``. ``polled`` is for a SLURM that nobody breaks: see ``polled``. A GPU that is
    asked for at once when a controller has started again is lost to SLURM 22.
    """
    profile = write_profile(directory / "profile", settings or {})
    line = workflow.command(*args, "--profile", profile, directory=directory, config=config)
    # How many cores, SLURM says.
    cores = line.index("--cores")
    del line[cores : cores + 2]
    return subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("polled.py"), *line[1:]]
        if polled
        else line,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Job:
    """A SLURM job: what the queue has of it, and what accounting adds."""

    id: str
    state: str
    rule: str
    wildcards: str
    partition: str = ""
    account: str = ""
    requested: Mapping[str, str] = field(default_factory=dict)
    """Trackable resources, such as cpu, mem, gres/gpu:h100."""
    allocated: Mapping[str, str] = field(default_factory=dict)
    minutes: int = 0
    """The time limit."""
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def megabytes(self) -> int:
        """The memory that it asked for, which SLURM writes as ``4000M`` or ``62.50G``."""
        match = re.fullmatch(r"([0-9.]+)([KMGT]?)[nc]?", self.requested["mem"])
        assert match is not None, self
        factor = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match.group(2)]
        return round(float(match.group(1)) * factor)


def lines(*command: str) -> list[list[str]]:
    """The fields of what SLURM prints, with the separator ``\\x1f`` between them."""
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\x1f") for line in said.splitlines()]


def jobs(directory: Path) -> list[Job]:
    """Accounting's jobs that were submitted from ``directory``, in the order of submission."""
    names = "JobIDRaw,State,Comment,Partition,Account,ReqTRES,AllocTRES,TimelimitRaw,Start,End"
    asked = ["sacct", "--allocations", "--parsable2", "--noheader", "--delimiter=\x1f"]
    asked += ["--starttime", "now-2days", "--format", f"{names},Submit,WorkDir"]
    found = []
    for *row, submitted, folder in lines(*asked):
        if folder == str(directory.resolve()):
            number, state, comment, partition, account, wanted, given, minutes, *times = row
            about = (
                *what(comment),
                partition,
                account,
                _resources(wanted),
                _resources(given),
            )
            # "CANCELLED by 0" names who did it.
            job = Job(number, state.split(" ")[0], *about, int(minutes), *map(_time, times))
            found.append((_time(submitted) or datetime.max, int(number), job))
    return [job for *_, job in sorted(found, key=lambda row: row[:2])]


def settled(directory: Path) -> list[Job]:
    """The jobs of ``directory`` once accounting, which lags behind, has all of them and the end of
    each."""

    def complete() -> list[Job] | None:
        known = {job.id for job in queue(directory, ended=True)}
        found = jobs(directory)
        over = all(job.state in ENDED for job in found)
        return found if over and known <= {job.id for job in found} else None

    found: list[Job] = until(complete, 60, every=0.5)
    return found


def queue(directory: Path, *, ended: bool = False) -> list[Job]:
    """The jobs of ``directory`` that wait or run; with ``ended`` also those that ended lately, for
    as long as SLURM remembers them."""
    asked = ["squeue", "--noheader", "--format=%i\x1f%T\x1f%k\x1f%Z"]
    return [
        Job(number, state, *what(comment))
        for number, state, comment, folder in lines(*asked, *["--states=all"] * ended)
        if folder == str(directory.resolve())
    ]


def running(directory: Path, rule: str, *, attempt: int = 1) -> Job:
    """The job of ``rule`` that runs, once it is there for that attempt."""

    def found() -> Job | None:
        listed = [job for job in queue(directory, ended=True) if job.rule == rule]
        run = [job for job in listed if job.state == "RUNNING"]
        return run[0] if len(listed) >= attempt and run else None

    job: Job = until(found, 300, every=0.5)
    return job


def cancel(directory: Path) -> None:
    """Cancel what still waits or runs of ``directory``, and wait until it is gone."""
    if left := [job.id for job in queue(directory)]:
        subprocess.run(["scancel", *left], capture_output=True, check=False)
        until(lambda: not queue(directory), 60, every=0.5)


def what(comment: str) -> tuple[str, str]:
    """Rule and wildcards that the plug-in wrote as ``rule_RULE_wildcards_VALUES``."""
    name, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    return name, wildcards


def _resources(text: str) -> dict[str, str]:
    """``cpu=1,mem=4000M,gres/gpu:h100=1`` as a dictionary."""
    return dict(each.split("=", 1) for each in text.split(",") if each)


def _time(text: str) -> datetime | None:
    """A time of accounting; None for one that has not come."""
    return None if text in ("", "Unknown", "None") else datetime.fromisoformat(text)
