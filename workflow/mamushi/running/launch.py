"""A stage as the command that a rule calls: alone with its outputs and its GPUs.

A model may be cut over several processes, one a GPU, that accelerate starts. The command is none of
them: it holds claims and leases, and passes the signals of Snakemake and SLURM on.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from mamushi.running import locks, machine
from mamushi.running.interruption import wait_for
from mamushi.running.stage import Stage, job_of, read_words

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


def run_stage(stage: Stage, words: Sequence[str]) -> int:
    """Run a stage, and say what it took: seconds, and those of a processor by this process and its
    ended children. Returns its exit code. Raises ``UserError`` for a GPU that cannot be used."""
    began, job, status = time.monotonic(), job_of(stage, **read_words(words)), 0
    if SHARDS in os.environ:
        # The command that started this process has looked after all of this.
        job.run()
        return 0
    card, counts = job.files.get("model_card"), json.loads(os.environ.get(GPUS, "{}"))
    # The folder of its card has a model's name.
    count = int(counts.get(card.parent.name, 1)) if card and stage.is_on_gpu else 1
    is_on_gpu = stage.is_on_gpu and job.execution.device != "cpu"
    # Who waits for another process holds no GPU.
    with locks.claim_outputs(job.outputs), locks.lease_gpus(is_on_gpu, count):
        if is_on_gpu:
            machine.require_cuda(locks.visible_gpus(), card)
        if count > 1:
            status = run(count, [stage.name, *words])
        else:
            # Only now: what it reads may have been made anew while it waited.
            job.run()
    cost = f"took {time.monotonic() - began:.2f} s, {sum(os.times()[:4]):.2f} s of CPU"
    # A log has both streams, and this is its end.
    sys.stdout.flush()
    print(f"mamushi {stage.name}: {cost}", file=sys.stderr, flush=True)
    return status


def run(count: int, words: Sequence[str], module: str = "mamushi") -> int:
    """Run ``module`` with these words in ``count`` processes that share a model. Returns the exit
    status: 0, that of the signal that came, or 1 where a process failed."""
    line = [sys.executable, "-c", LAUNCHER, *OPTIONS.split(), f"--num_processes={count}"]
    status, received = wait_for(subprocess.Popen([*line, "--module", module, *words]))
    return 128 + received if received else status
