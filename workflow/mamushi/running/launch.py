"""Processes of one job, one a GPU, that accelerate starts and that share a model. The command is
none of them: it holds claims and leases, and passes the signals of Snakemake and SLURM on."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mamushi.running.interruption import wait_for

SHARDS = "ACCELERATE_USE_FSDP"  # set in these processes
GPUS = "MAMUSHI_GPUS"  # JSON: how many GPUs jobs of a model take, where these are several
LAUNCHER = """
import ctypes, runpy, signal
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the command ends, however that ends
runpy.run_module("accelerate.commands.launch", run_name="__main__")
"""
OPTIONS = """--use_fsdp --fsdp_version=2 --fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP
--fsdp_cpu_ram_efficient_loading=true --mixed_precision=no --dynamo_backend=no --num_machines=1
--main_process_port=0"""


def process_count(model_card: Path | None) -> int:
    """Return the processes for a job with the model of this card, in whose folder's name it is: 1
    but for one that is to be sharded."""
    name = model_card.parent.name if model_card else None
    return int(json.loads(os.environ.get(GPUS, "{}")).get(name, 1))


def run(count: int, words: Sequence[str], module: str = "mamushi") -> int:
    """Run ``module`` with these words in ``count`` processes that share a model. Returns the exit
    status: 0, that of the signal that came, or 1 where a process failed."""
    line = [sys.executable, "-c", LAUNCHER, *OPTIONS.split(), f"--num_processes={count}"]
    status, received = wait_for(subprocess.Popen([*line, "--module", module, *words]))
    return 128 + received if received else status
