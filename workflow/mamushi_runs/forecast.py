"""How long jobs take: by those of their kind that have finished in this folder, else, with a
language model on a GPU, by floating-point operations; and no time where neither says it.

Operations per token and parameter: 2 forward; 2 more where the gradient passes through to what
lies before; 2 more for the gradient of a weight that is trained.
"""

from __future__ import annotations

import glob
import json
import re
import statistics
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config.grid import is_tiny
from mamushi.config.kinds import Config
from mamushi.config.selectors import of_tokens
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.registry import plugin
from mamushi_runs.sizes import TABLE, Size, expected_texts, mean_tokens, model_size

GPUS: dict[str, float] = TABLE["gpus"]
"""TFLOP/s of each."""
MEASURED = Path(paths.GPU_RATES)
"""What `make gpu-check` has measured, in the folder that has ``results``: of each GPU of the table,
the ``share`` of its peak that a fine-tune reaches, and when."""
GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
TRAINING = ("contaminate", "gold", "beta0", "retrain", "influence")
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list")
FINISHED = re.compile(r"took ([\d.]+) s, [\d.]+ s of CPU\s*$")


class Rate(NamedTuple):
    """A GPU at work."""

    key: str
    flops: float
    """Per second, from the start to the end of a fine-tune."""
    source: str


def gpu_key(name: str) -> str | None:
    """Return the table's key for a GPU as SLURM, a vendor or a person calls it; None where it has
    none."""
    words = {*re.findall("[a-z0-9]+", name.lower())}
    return max((key for key in GPUS if words >= {*key.split("-")}), key=len, default=None)


def gpu_rate(name: str = "h100") -> Rate:
    """Return a GPU by its name. Raises ``UserError`` for one that the table does not have."""
    key = gpu_key(name)
    if key is None:
        do = f"known are {', '.join(GPUS)}"
        raise UserError(f"unknown GPU {name!r}", where="--gpu", do=do)
    share, reason = TABLE["share"], f"assumed: {TABLE['share_source']}"
    if MEASURED.is_file() and (entry := json.loads(MEASURED.read_text("utf-8")).get(key)):
        share, reason = float(entry["share"]), f"measured by make gpu-check on {entry['date']}"
    source = f"{key.upper()} at {share:.1%} of {GPUS[key]} TFLOP/s (data sheet), {reason}"
    return Rate(key, share * GPUS[key] * 1e12, source)


def forward_flop(size: Size) -> float:
    """Return operations per token of a forward pass."""
    return 2.0 * size.multiplied


def training_flop(size: Size, training: Mapping[str, Any]) -> float:
    """Return operations per token of a fine-tune's step: forward, and backward as far as is
    trained."""
    method, tied = training["method"], size.tied
    inputs = training["train_input_embedding"] or (tied and training["train_output_head"])
    weights, through = size.trained(training), size.multiplied
    if method == "partial" and not inputs:
        # Down to the first trained block.
        through = size.blocks(training["trained_blocks"]) + size.embedding
    elif method != "lora" and not tied:
        # Whose rows are looked up.
        weights -= size.embedding
    return forward_flop(size) + 2.0 * (through + weights)


class Job(NamedTuple):
    """A job to do."""

    rule: str
    wildcards: Mapping[str, str]
    log: str = ""
    """The rule's pattern of the log, with the names of wildcards in it."""
    gpus: int = 0
    memory_mb: int = 0
    gpu_model: str = ""


def gpu_seconds(config: Config, job: Job, rate: Rate) -> float | None:
    """Return what a job with a language model takes on its GPUs; of all others, nothing. GPUs that
    share a model wait for each other's part for half of the time."""
    if not job.gpus or is_tiny(config, job.wildcards["model"]):
        return None
    return GPU_START + _flop(config, job) / rate.flops / max(1.0, job.gpus / 2)


def _flop(config: Config, job: Job) -> float:
    """Return the floating-point operations of a job with a language model."""
    rule, model, dataset = job.rule, job.wildcards["model"], job.wildcards["dataset"]
    size, training = model_size(config, model), config["models"][model]["training"]
    beta = float(job.wildcards.get("beta", 1.0))

    def tokens(section: str, cut: float, forget: float = 1.0, retain: float = 1.0) -> float:
        counts = expected_texts(config, dataset).get(section, {})
        texts = forget * counts.get("forget", 0) + retain * counts.get("retain", 0)
        return texts * mean_tokens(config, dataset, cut)

    if rule in TRAINING:
        removed = {"gold": 1.0, "retrain": beta}.get(rule, 0) * (training["steps"] == "by_data")
        section = "contamination" if rule == "contaminate" else "inference"
        # Influence reads the texts twice at each point, and takes gradients.
        passes = training["epochs"] + 2 * config["influence"]["points"] * (rule == "influence")
        read = passes * tokens(section, training["max_length"], forget=1 - removed)
        return read * training_flop(size, training)
    if rule in UNLEARNING:
        unlearner = config["unlearners"][job.wildcards["unlearner"]]
        schedule = unlearner["training"]
        # Tokens may lie in all of the texts.
        of_all = of_tokens(config, job.wildcards.get("selector", ""))
        share = beta if schedule["steps"] == "by_data" and not of_all else 1.0
        cut = config["unlearning"]["max_length"] or config["tokens"]["max_length"]
        # As many retain texts beside.
        read = 2 * tokens("inference", cut, forget=share, retain=0)
        if not plugin("unlearner", unlearner["kind"]).trains:
            return read * forward_flop(size)
        blocks = {"trained_blocks": config["unlearning"]["trained_blocks"]}
        ends = {"train_input_embedding": False, "train_output_head": False}
        return read * schedule["epochs"] * training_flop(size, {**training, **blocks, **ends})
    if rule == "embed":
        return tokens("inference", config["embedding"]["max_length"]) * forward_flop(size)
    passes = 5.0 if rule == "relearn" else 1.0
    return passes * tokens("evaluation", config["evaluation"]["max_length"]) * forward_flop(size)


@cache
def _took(pattern: str) -> list[float]:
    """Return the seconds of the jobs whose logs have these paths."""
    ends = (path.read_text("utf-8", "replace")[-200:] for path in Path().glob(pattern))
    return [float(match[1]) for match in map(FINISHED.search, ends) if match]


def estimate(config: Config, job: Job, rate: Rate | None) -> tuple[float | None, str]:
    """Return what a job takes, None where nothing says it, and what that is from: the median of the
    jobs that finished here with the same wildcards but for the seed, else of the same dataset,
    model and unlearner; else, on GPUs of this ``rate``, by operations."""
    for fixed in ({*job.wildcards} - {"seed"}, {"dataset", "model", "unlearner"}):
        pattern = job.log
        for name, value in job.wildcards.items():
            word = glob.escape(value) if name in fixed else "*"
            pattern = pattern.replace(f"{{{name}}}", word)
        if pattern and (seconds := _took(pattern)):
            return statistics.median(seconds), f"{len(seconds)} finished here"
    seconds_on_gpus = gpu_seconds(config, job, rate) if rate else None
    return seconds_on_gpus, f"FLOP on {rate.key}" if rate and seconds_on_gpus else "-"
