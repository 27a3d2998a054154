"""Jobs that fail on SLURM: what the next attempt asks for, and what the user is told."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import time
from pathlib import Path

import pytest

from mamushi import paths
from tests.slurm import cluster
from tests.slurm.conftest import science

CELL = {"dataset": "synthetic", "model": "tiny-llama", "seed": 0}
BASE = paths.MODEL_CARD.format(**CELL)
RETRAINED = [
    paths.PERPLEXITY.format(**CELL, selector="random", beta=beta) for beta in ("0.30", "0.60")
]


def running(folder: Path, rule: str, number: int = 1) -> cluster.Queued:
    """The job of ``rule`` that runs, once ``number`` of them were submitted."""

    def found() -> cluster.Queued | None:
        listed = [job for job in cluster.queue(folder, ended=True) if job.rule == rule]
        run = [job for job in listed if job.state == "RUNNING"]
        return run[0] if len(listed) == number and run else None

    job: cluster.Queued = cluster.wait_for(found, 300)
    return job


def attempts(folder: Path, rule: str) -> list[cluster.Job]:
    return [job for job in cluster.settled(folder) if job.rule == rule]


def test_an_attempt_asks_for_more_than_the_one_before(folder: Path) -> None:
    """A job alone, and a pack: each is cancelled while it runs, as one is that has no more memory
    or time."""
    with open(folder / "said", "w", encoding="utf-8") as output:
        grid = cluster.start(*RETRAINED, directory=folder, config=science(), output=output)
        for rule in ("base_model", "retrain"):
            subprocess.run(["scancel", running(folder, rule).id], check=True)
        assert grid.wait(timeout=900) == 0, (folder / "said").read_text(encoding="utf-8")
    for rule, megabytes, minutes in (("base_model", 8000, 60), ("retrain", 4000, 2 * 60)):
        first, second = attempts(folder, rule)
        assert (first.state, second.state) == ("CANCELLED", "COMPLETED")
        assert (first.megabytes, second.megabytes) == (megabytes, 2 * megabytes)
        assert (first.minutes, second.minutes) == (minutes, 2 * minutes)
        assert (first.requested["gres/gpu"], second.requested["gres/gpu"]) == ("1", "1")
    assert first.pack == second.pack is not None
    assert all((folder / path).exists() for path in RETRAINED)


def test_a_job_is_told_to_end_before_its_time_is_over(folder: Path) -> None:
    """With a limit of 3 minutes and a signal 2 minutes ahead: it fails within 2 minutes, by itself,
    and its next attempt has twice the time."""
    config = science()
    config["models"]["tiny-llama"]["pretraining"]["epochs"] = 10_000
    settings = {"set-resources": {"base_model": {"runtime": "3 * attempt"}}}
    with open(folder / "said", "w", encoding="utf-8") as output:
        grid = cluster.start(
            BASE, directory=folder, config=config, settings=settings, output=output
        )
        try:
            again = running(folder, "base_model", number=2)
        finally:
            # At once: asked kindly, it would wait for a job of ten thousand epochs.
            grid.kill()
            grid.wait()
            cluster.cancel(folder)
    first, second = attempts(folder, "base_model")
    assert second.id == again.id
    assert first.state == "FAILED"  # and neither TIMEOUT nor CANCELLED
    assert first.started is not None and first.ended is not None
    assert (first.ended - first.started).total_seconds() < 150
    assert (first.minutes, second.minutes) == (3, 6)
    log = (folder / "results/logs/base_model/tiny-llama.log").read_text(encoding="utf-8")
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("name", "rule", "wanted"),
    [
        ("gpu_model", "base_model", r"SLURM sbatch failed\. .*(TRES|node configuration)"),
        ("gpu_partition", "base_model", r"SLURM sbatch failed\. .*invalid partition .*no_such"),
        ("cpu_partition", "examples", r"SLURM sbatch failed\. .*invalid partition .*no_such"),
        ("account", "examples", r"account .?no_such.? (appears to be|is) invalid"),
    ],
)
def test_a_wrong_name_fails_at_once_and_says_which(
    folder: Path, slurm: cluster.Cluster, name: str, rule: str, wanted: str
) -> None:
    wrong = dataclasses.replace(slurm, **{name: "no_such"})
    begun = time.monotonic()
    done = cluster.run(BASE, directory=folder, config=science(), cluster=wrong, check=False)
    assert done.returncode != 0
    assert re.search(wanted, done.stdout), done.stdout
    # Also when it is tried again; the minutes are for a slow machine, on which jobs run before it.
    assert time.monotonic() - begun < 120
    # Accounting may list what was refused; it was given nothing.
    assert not [job for job in cluster.jobs(folder) if job.rule == rule and job.allocated]
