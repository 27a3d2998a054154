"""How long jobs take: by those of their kind that have finished in this folder, else, with a
language model on a GPU, by floating-point operations; and no time where neither says it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config.grid import is_tiny
from mamushi.config.kinds import Config
from mamushi.registry import plugin
from mamushi_runs.sizes import Size, expected_texts, mean_tokens, model_size

RATE = 0.266 * 989e12
"""Floating-point operations per second of an H100 from the start to the end of a fine-tune: the
paper's share of the data sheet's, of its 105 minutes of padded texts."""
GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
TRAINING = ("endpoint", "retrain", "influence")
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list")
FINISHED = re.compile(r"took ([\d.]+) s, [\d.]+ s of CPU\s*$")


class Job(NamedTuple):
    """A job to do, with the path of its ``log``."""

    rule: str
    wildcards: Mapping[str, str]
    log: str = ""
    gpus: int = 0
    memory_mb: int = 0


def estimate(config: Config, job: Job) -> tuple[float | None, str]:
    """Return the seconds of a job, None where nothing says them, and what they are from: the median
    of the rule's jobs that finished here, of the same dataset, model and unlearner; else, on GPUs,
    operations."""
    kind = {job.wildcards.get(name) for name in ("dataset", "model", "unlearner")}
    names = enumerate(Path(job.log).parts)
    pattern = "/".join(name if place < 3 or name in kind else "*" for place, name in names)
    if pattern and (seconds := _took(pattern)):
        return statistics.median(seconds), f"{len(seconds)} finished here"
    by_operations = gpu_seconds(config, job)
    return by_operations, "FLOP" if by_operations else "-"


@cache
def _took(pattern: str) -> list[float]:
    """Return the seconds of the jobs whose logs have these paths."""
    ends = (path.read_text("utf-8", "replace")[-200:] for path in Path().glob(pattern))
    return [float(match[1]) for match in map(FINISHED.search, ends) if match]


def gpu_seconds(config: Config, job: Job) -> float | None:
    """Return what a job with a language model takes on its GPUs; of others, nothing. GPUs that
    share a model wait for each other for half of the time."""
    if not job.gpus or is_tiny(config, job.wildcards["model"]):
        return None
    return GPU_START + _flop(config, job) / RATE / max(1.0, job.gpus / 2)


def _flop(config: Config, job: Job) -> float:
    """Return the floating-point operations of a job with a language model."""
    rule, model, dataset = job.rule, job.wildcards["model"], job.wildcards["dataset"]
    size, training = model_size(config, model), config["models"][model]["training"]
    beta, forward = float(job.wildcards.get("beta", 1.0)), 2.0 * size.multiplied

    def tokens(section: str, cut: float, **shares: float) -> float:
        counts = expected_texts(config, dataset).get(section, {})
        texts = sum(shares.get(domain, 1.0) * count for domain, count in counts.items())
        return texts * mean_tokens(config, dataset, cut)

    if rule in TRAINING:
        role = job.wildcards.get("role", rule)
        removed = {"gold": 1.0, "retrain": beta}.get(role, 0) * (training["steps"] == "by_data")
        section = "contamination" if role == "contaminated" else "inference"
        # Influence reads the texts twice at each point, and takes gradients.
        passes = training["epochs"] + 2 * config["influence"]["points"] * (rule == "influence")
        read = tokens(section, training["max_length"], forget=1 - removed)
        return passes * read * training_flop(size, training)
    if rule in UNLEARNING:
        unlearner = config["unlearners"][job.wildcards["unlearner"]]
        schedule = unlearner["training"]
        share = beta if schedule["steps"] == "by_data" else 1.0
        cut = config["unlearning"]["max_length"] or config["tokens"]["max_length"]
        # As many retain texts beside.
        read = 2 * tokens("inference", cut, forget=share, retain=0)
        if not plugin("unlearner", unlearner["kind"]).trains:
            return read * forward
        blocks = {"trained_blocks": config["unlearning"]["trained_blocks"]}
        ends = {"train_input_embedding": False, "train_output_head": False}
        return read * schedule["epochs"] * training_flop(size, {**training, **blocks, **ends})
    if rule == "embed":
        return tokens("inference", config["embedding"]["max_length"]) * forward
    passes = 5.0 if rule == "relearn" else 1.0
    return passes * tokens("evaluation", config["evaluation"]["max_length"]) * forward


def training_flop(size: Size, training: Mapping[str, Any]) -> float:
    """Return operations per token of a fine-tune's step: of each parameter 2 forward, 2 more where
    the gradient passes through to what lies before, and 2 more where it is trained."""
    method, tied = training["method"], size.tied
    inputs = training["train_input_embedding"] or (tied and training["train_output_head"])
    weights, through = size.trained(training), size.multiplied
    if method == "partial" and not inputs:
        # Down to the first trained block.
        through = size.blocks(training["trained_blocks"]) + size.embedding
    elif method != "lora" and not tied:
        # Whose rows are looked up.
        weights -= size.embedding
    return 2.0 * (size.multiplied + through + weights)
