"""Run the workflow on a real SLURM, and read what SLURM's queue and accounting say of its jobs."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import yaml

from tests.support import workflow
from tests.support.workflow import ROOT, environment

PROFILE = ROOT / "profiles" / "slurm" / "profile.v9+.yaml"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
"""States after which SLURM does nothing more with a job."""


@dataclass(frozen=True)
class Cluster:
    """Names of a cluster, as in the profile's ``cluster``; None leaves the account to SLURM."""

    account: str | None
    cpu_partition: str
    gpu_partition: str
    gpu_model: str


def here() -> Cluster:
    """The profile's names, changed by ``MAMUSHI_SLURM_ACCOUNT``, ``MAMUSHI_SLURM_CPU_PARTITION``,
    ``MAMUSHI_SLURM_GPU_PARTITION`` and ``MAMUSHI_SLURM_GPU``."""
    names = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))["cluster"]
    return Cluster(
        account=os.environ.get("MAMUSHI_SLURM_ACCOUNT", names["cpu"].get("slurm_account")),
        cpu_partition=os.environ.get(
            "MAMUSHI_SLURM_CPU_PARTITION", names["cpu"]["slurm_partition"]
        ),
        gpu_partition=os.environ.get(
            "MAMUSHI_SLURM_GPU_PARTITION", names["gpu"]["slurm_partition"]
        ),
        gpu_model=os.environ.get("MAMUSHI_SLURM_GPU", names["gpu"]["gpu_model"]),
    )


def missing() -> str | None:
    """Why nothing can be submitted here, or None when ``sbatch`` works."""
    absent = [
        name for name in ("sbatch", "squeue", "scancel", "scontrol") if not shutil.which(name)
    ]
    if absent:
        return f"no SLURM here: {', '.join(absent)} not found"
    try:
        ping = subprocess.run(
            ["scontrol", "ping"], capture_output=True, text=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        return "SLURM's controller does not answer"
    if ping.returncode != 0 or " UP" not in ping.stdout:
        return f"SLURM's controller is down: {(ping.stdout + ping.stderr).strip()}"
    return None


def without_accounting() -> str | None:
    """Why ``sacct`` tells nothing here, or None when it does."""
    if not shutil.which("sacct"):
        return "no accounting here: sacct not found"
    asked = subprocess.run(["sacct", "-n"], capture_output=True, text=True, check=False)
    return None if asked.returncode == 0 else f"no accounting here: {asked.stderr.strip()}"


def write_profile(folder: Path, cluster: Cluster, settings: Mapping[str, Any]) -> Path:
    """The profile profiles/slurm with this cluster's names, asked for its jobs every second.

    ``settings`` replace or add keys of the profile; None removes one. ``set-resources`` are added
    to the rules' own. Returns the folder that ``--profile`` takes.
    """
    profile = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    gpu = {"slurm_partition": cluster.gpu_partition, "gpu_model": cluster.gpu_model}
    profile["set-resources"]["on_gpu"] = gpu
    profile["default-resources"]["slurm_partition"] = cluster.cpu_partition
    if cluster.account is not None:
        profile["default-resources"]["slurm_account"] = cluster.account
    profile |= {
        "slurm-init-seconds-before-status-checks": 1,
        "max-status-checks-per-second": 1,
        "latency-wait": 10,
    }
    for rule, resources in settings.get("set-resources", {}).items():
        profile["set-resources"].setdefault(rule, {}).update(resources)
    profile |= {key: value for key, value in settings.items() if key != "set-resources"}
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in profile.items() if key != "cluster" and value is not None}
    (folder / PROFILE.name).write_text(yaml.safe_dump(kept), encoding="utf-8")
    return folder


def run(
    *args: str | Path, directory: Path, check: bool = True, timeout: float = 1200, **given: Any
) -> str:
    """Run the workflow on SLURM to its end, as ``start``, and return all that it says.

    Raises ``AssertionError`` with that when its exit status is not as ``check`` has it: 0, or not.
    """
    with (directory / "said").open("w+", encoding="utf-8") as output:
        status = start(*args, directory=directory, output=output, **given).wait(timeout)
        output.seek(0)
        said = output.read()
    assert (status == 0) == check, said
    return said


def start(
    *args: str | Path,
    directory: Path,
    output: IO[str],
    config: Mapping[str, Any],
    cluster: Cluster | None = None,
    settings: Mapping[str, Any] | None = None,
) -> subprocess.Popen[str]:
    """Start the workflow on SLURM with targets and options ``args``, in a session of its own, so
    that a test can signal all of it.

    ``config`` is laid over the repository's config.yaml, ``settings`` over its profile; see
    ``write_profile``.
    """
    profile = write_profile(directory / "profile", cluster or here(), settings or {})
    line = workflow.command(*args, "--profile", profile, directory=directory, config=config)
    # How many cores, SLURM says.
    cores = line.index("--cores")
    del line[cores : cores + 2]
    return subprocess.Popen(
        line,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Job:
    """A SLURM job as accounting has it."""

    id: str
    rule: str
    wildcards: str
    state: str
    partition: str
    account: str
    requested: Mapping[str, str]  # trackable resources, such as cpu, mem, gres/gpu:h100
    allocated: Mapping[str, str]
    minutes: int  # the time limit
    submitted: datetime | None
    started: datetime | None
    ended: datetime | None
    node: str

    @property
    def megabytes(self) -> int:
        """The memory that it asked for."""
        return megabytes(self.requested["mem"])


_FIELDS = (
    *("JobIDRaw", "Comment", "State", "Partition", "Account", "ReqTRES", "AllocTRES"),
    *("TimelimitRaw", "Submit", "Start", "End", "NodeList", "WorkDir"),
)


def jobs(directory: Path) -> list[Job]:
    """Accounting's jobs that were submitted from ``directory``, in the order of submission."""
    asked = ["sacct", "--allocations", "--parsable2", "--noheader", "--delimiter=\x1f"]
    asked += ["--starttime", "now-2days", "--format", ",".join(_FIELDS)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = []
    for line in said.splitlines():
        row = dict(zip(_FIELDS, line.split("\x1f"), strict=True))
        if row["WorkDir"] != str(directory.resolve()):
            continue
        rule, wildcards = what(row["Comment"], row["JobIDRaw"])
        found.append(
            Job(
                id=row["JobIDRaw"],
                rule=rule,
                wildcards=wildcards,
                # "CANCELLED by 0" names who did it.
                state=row["State"].split(" ")[0],
                partition=row["Partition"],
                account=row["Account"],
                requested=_resources(row["ReqTRES"]),
                allocated=_resources(row["AllocTRES"]),
                minutes=int(row["TimelimitRaw"]),
                submitted=_time(row["Submit"]),
                started=_time(row["Start"]),
                ended=_time(row["End"]),
                node=row["NodeList"],
            )
        )
    return sorted(found, key=lambda job: (job.submitted or datetime.max, int(job.id)))


def settled(directory: Path, seconds: float = 60) -> list[Job]:
    """The jobs of ``directory`` once accounting, which lags behind, has all of them and the end of
    each."""

    def complete() -> list[Job] | None:
        known = {job.id for job in queue(directory, ended=True)}
        found = jobs(directory)
        over = all(job.state in ENDED for job in found)
        return found if over and known <= {job.id for job in found} else None

    found: list[Job] = wait_for(complete, seconds)
    return found


@dataclass(frozen=True)
class Queued:
    """A job in SLURM's queue, ended ones included for as long as SLURM remembers them."""

    id: str
    state: str
    rule: str
    wildcards: str
    node: str


def queue(directory: Path, *, ended: bool = False) -> list[Queued]:
    """The jobs of ``directory`` that wait or run; with ``ended`` also those that ended lately."""
    asked = ["squeue", "--noheader", "--format=%i\x1f%T\x1f%k\x1f%N\x1f%Z"]
    asked += ["--states=all"] if ended else []
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = []
    for line in said.splitlines():
        number, state, comment, node, folder = line.split("\x1f")
        if folder == str(directory.resolve()):
            rule, wildcards = what(comment, number)
            found.append(Queued(number, state, rule, wildcards, node))
    return found


def running(directory: Path, rule: str, *, attempt: int = 1, seconds: float = 300) -> Queued:
    """The job of ``rule`` that runs, once it is there for that attempt."""

    def found() -> Queued | None:
        listed = [job for job in queue(directory, ended=True) if job.rule == rule]
        run = [job for job in listed if job.state == "RUNNING"]
        return run[0] if len(listed) >= attempt and run else None

    job: Queued = wait_for(found, seconds)
    return job


def cancel(directory: Path) -> None:
    """Cancel what still waits or runs of ``directory``, and wait until it is gone."""
    if left := [job.id for job in queue(directory)]:
        subprocess.run(["scancel", *left], capture_output=True, check=False)
        wait_for(lambda: not queue(directory), 60)


def what(comment: str, number: str) -> tuple[str, str]:
    """Rule and wildcards that the plug-in wrote as ``rule_RULE_wildcards_VALUES``; of a group, the
    job that makes a model, as the command line that was submitted has it."""
    name, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    if name.startswith("arm_"):
        line = ["sacct", "-X", "--noheader", "--jobs", number, "--format", "SubmitLine%8000"]
        submitted = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        if targets := re.findall(r"'(\w+):(dataset=[^']+)'", submitted):
            return next((each for each in targets if each[0] != "evaluate"), targets[0])
    return name, wildcards


def megabytes(amount: str) -> int:
    """Megabytes of an amount as SLURM writes it, such as ``4000M`` or ``62.50G``."""
    match = re.fullmatch(r"([0-9.]+)([KMGT]?)[nc]?", amount)
    assert match is not None, amount
    factor = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match.group(2)]
    return round(float(match.group(1)) * factor)


def wait_for(condition: Callable[[], Any], seconds: float, every: float = 0.5) -> Any:
    """What ``condition`` returns once that is true; ``AssertionError`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"nothing within {seconds} s"
        time.sleep(every)
    return found


def _resources(text: str) -> dict[str, str]:
    """``cpu=1,mem=4000M,gres/gpu:h100=1`` as a dictionary."""
    return dict(each.split("=", 1) for each in text.split(",") if each)


def _time(text: str) -> datetime | None:
    """A time of accounting; None for one that has not come."""
    return None if text in ("", "Unknown", "None") else datetime.fromisoformat(text)
