"""A tiny grid whose last jobs train on SLURM for some seconds, to be disturbed meanwhile.

An undisturbed run on the CPU of this machine, without SLURM, is made once. A scene is a copy of it
without the retrained models and what depends on them: two SLURM jobs, tables and figures are to be
made again, and must come out bit for bit as they were.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import safe_open

from mamushi.config import arms
from mamushi.io import paths
from tests.support import cluster
from tests.support import small_grid as grid
from tests.support.processes import until

CONFIG: dict[str, Any] = grid.CONFIG | {
    "grid": grid.CONFIG["grid"] | {"budgets": [0.5]},
    "keep_checkpoints": True,  # so that trained weights are compared as well
    "training": grid.CONFIG["training"] | {"epochs": 8, "batch_size": 8},
    "execution": {},
}
# On SLURM every step is saved, so that a fault at any moment has a checkpoint before it.
SAVING = {**CONFIG, "execution": {"checkpoint_seconds": 0}}
CELL, BUDGET = {"dataset": grid.DATASET, "model": grid.MODEL, "seed": 0}, 0.5
RETRAINED = [
    pattern.format(**CELL, arm=arms.retrained_arm(selector, BUDGET))
    for selector in CONFIG["grid"]["selectors"]
    for pattern in (paths.PERPLEXITY, paths.CARD)
]
SETTINGS = {"max-status-checks-per-second": 10}
"""The plug-in does not wait between queries that fail."""


@dataclass
class Scene:
    """A folder in which something is to happen, and the main processes that were started there."""

    folder: Path
    expected: dict[str, str]
    mains: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start the workflow on SLURM; what it says is appended to ``said``."""
        with (self.folder / "main.log").open("a", encoding="utf-8") as log:
            options: dict[str, Any] = {"directory": self.folder, "config": SAVING}
            process = cluster.start(*args, **options, settings=SETTINGS, output=log)
        self.mains.append(process)
        return process

    @property
    def said(self) -> str:
        """All that the main processes have said so far."""
        return (self.folder / "main.log").read_text(encoding="utf-8")

    def finish(self, process: subprocess.Popen[str], seconds: float = 600) -> None:
        """Wait for the end of a main process that must succeed, and compare all results."""
        assert process.wait(seconds) == 0, self.said
        assert grid.contents(self.folder / "results") == self.expected
        assert not cluster.queue(self.folder)

    def training(self, steps: int = 5, seconds: float = 300) -> cluster.Job:
        """A SLURM job that has trained and saved that many steps, and trains on."""

        def found() -> cluster.Job | None:
            every = (job for job in cluster.queue(self.folder) if job.rule == "retrain")
            trains = (job for job in every if job.state == "RUNNING")
            return next((job for job in trains if len(saved(self.state(job))) >= steps), None)

        job: cluster.Job = until(found, seconds, every=0.3)
        return job

    def state(self, job: cluster.Job) -> Path:
        """The checkpoint of a job that retrains."""
        selector = next(name for name in CONFIG["grid"]["selectors"] if name in job.wildcards)
        card = paths.CARD.format(**CELL, arm=arms.retrained_arm(selector, BUDGET))
        return Path(f"{self.folder / card}.state")

    def saved_times(self, job: cluster.Job) -> list[float]:
        """The times of the steps that its checkpoint has."""
        times = saved(self.state(job))
        assert times
        return times

    def continued(self, job: cluster.Job, seconds: list[float]) -> bool:
        """Whether the job's training went on from a checkpoint with these times of steps: a step
        that is made again takes another time."""
        log = self.state(job).with_name("train_log.parquet")
        return bool(pq.read_table(log)["seconds"].to_pylist()[: len(seconds)] == seconds)

    def kill(self) -> None:
        """Kill the main process that works here with -9, and not its SLURM jobs."""
        for process in self.mains:
            process.kill()
            process.wait(timeout=30)

    def close(self) -> None:
        """End what is left of processes and jobs."""
        for process in self.mains:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=30)
        cluster.cancel(self.folder)
        # A SLURM without cgroups does not find every process of a job that it kills.
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if Path(os.readlink(path / "cwd")) == self.folder.resolve():
                    os.kill(int(path.name), signal.SIGKILL)


def make(base: Path, folder: Path) -> Scene:
    """A scene in ``folder``, from the undisturbed run in ``base``."""
    shutil.copytree(base, folder, dirs_exist_ok=True, symlinks=True)
    for name in RETRAINED:
        (folder / name).unlink()
    shutil.rmtree(folder / "results" / "tables")
    shutil.rmtree(folder / "results" / "figures")
    return Scene(folder, grid.contents(base / "results"))


def saved(state: Path) -> list[float]:
    """The times of the steps in a checkpoint; none without one."""
    try:
        with safe_open(state, "pt") as file:
            times: list[float] = json.loads(file.metadata()["mamushi"])["log"]["seconds"]
            return times
    except (FileNotFoundError, RuntimeError) as error:
        # It may be deleted while it is opened, which safetensors tells as an error of its own.
        if isinstance(error, RuntimeError) and "No such file" not in str(error):
            raise
    return []
