"""What jobs take: by those of their kind that have finished in this folder, else, with a language
model on a GPU, by floating-point operations; and no time where neither says it.

Operations per token and parameter: 2 forward; 2 more where the gradient passes through to what
lies before; 2 more for the gradient of a weight that is trained.
"""

from __future__ import annotations

import glob
import re
import statistics
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config import arms, grid
from mamushi.config.selectors import of_tokens
from mamushi.config.sources import raw_size
from mamushi.registry import plugin
from mamushi_runs.commands._rates import Rate
from mamushi_runs.sizes import STATE_BYTES, TABLE, Size, counted, expected_texts, of

GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
TRAINING = ("contaminate", "gold", "beta0", "retrain")
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list")
READING = {
    **{
        "embed": 1.0,
        "evaluate": 1.0,
        "generate": 0.5,
        "judge": 0.5,
        "membership": 0.5,
        "relearn": 5.0,
    },
    # Whose length nobody knows.
    **{"task_scores": 1.0},
}
"""Rules that run a model forward, and over how much of their texts, as a share."""
FINISHED = re.compile(r"took ([\d.]+) s, ([\d.]+) s of CPU\s*$")


def forward_flop(size: Size) -> float:
    """Return operations per token of a forward pass."""
    return 2.0 * size.multiplied


def training_flop(size: Size, training: Mapping[str, Any]) -> float:
    """Return operations per token of a fine-tune's step: forward, and backward as far as is
    trained."""
    if training["method"] != "partial":
        # Through all blocks. The weights beside adapters have no gradient; adapters are multiplied
        # with forward, backward and for theirs.
        full = training["method"] == "full"
        weights = size.multiplied if full else 3 * size.adapters(training)
        return 2 * forward_flop(size) + 2.0 * weights
    blocks = min(int(training["trained_blocks"]), size.layers) * size.block
    inputs, head = bool(training["train_input_embedding"]), bool(training["train_output_head"])
    if size.tied:
        # One tensor, at both ends.
        inputs = head = inputs or head
    # Up to the input embedding if that is trained; else to the first trained block.
    through = size.multiplied if inputs else blocks + size.embedding
    return forward_flop(size) + 2.0 * (through + blocks + (size.embedding if head else 0))


class Job(NamedTuple):
    """A job to do."""

    rule: str
    wildcards: Mapping[str, str]
    log: str | None = None
    """The rule's pattern of the log, with the names of wildcards in it."""
    gpus: int = 0
    memory_mb: float = 0.0


class Estimate(NamedTuple):
    """What one job is expected to take."""

    seconds: float | None
    """Of wall time; None where nothing says it."""
    source: str
    cpu_seconds: float = 0.0
    """Of a processor, where such jobs have finished."""


class Bill:
    """Estimates the jobs of a configuration; ``root`` is the folder with ``results``, and without
    ``gpus`` the jobs that ask for one take a processor."""

    def __init__(
        self, config: Mapping[str, Any], rate: Rate, *, gpus: bool = True, root: Path = Path()
    ) -> None:
        self.config, self.rate, self.gpus, self.root = config, rate, gpus, root
        self.size = cache(lambda model: of(config, model, root))
        self.texts = cache(lambda dataset: expected_texts(config, dataset, root))
        self._took = cache(self._read_logs)

    def estimate(self, job: Job) -> Estimate:
        """Return what a job takes: the median of those that finished here with the same wildcards
        but for the seed, else of the same dataset, model and unlearner; else by operations."""
        for fixed in ({*job.wildcards} - {"seed"}, {"dataset", "model", "unlearner"}):
            pattern = job.log or ""
            for name, value in job.wildcards.items():
                part = glob.escape(value) if name in fixed else "*"
                pattern = pattern.replace(f"{{{name}}}", part)
            if pattern and (times := self._took(pattern)):
                seconds, cpu = (statistics.median(column) for column in zip(*times, strict=True))
                return Estimate(seconds, f"{len(times)} finished here", cpu)
        return self.computed(job)

    def _read_logs(self, pattern: str) -> list[tuple[float, float]]:
        """Return wall and processor seconds of the jobs whose logs have these paths."""
        ends = (path.read_text("utf-8", "replace")[-200:] for path in self.root.glob(pattern))
        found = map(FINISHED.search, ends)
        return [(float(match[1]), float(match[2])) for match in found if match]

    def computed(self, job: Job) -> Estimate:
        """Return what a job with a language model takes on a GPU; of all others, nothing."""
        model, dataset = job.wildcards.get("model"), job.wildcards.get("dataset")
        known = model in self.config["models"] and dataset in self.config["datasets"]
        if not (known and job.gpus and self.gpus) or grid.is_tiny(self.config, str(model)):
            return Estimate(None, "-")
        flop = self._flop(job.rule, str(model), str(dataset), job.wildcards)
        # Several share a model, and wait for each other's part for half of the time.
        seconds = GPU_START + flop / self.rate.flops / max(1.0, job.gpus / 2)
        return Estimate(seconds, f"FLOP on {self.rate.key}")

    def count(self, dataset: str, section: str, forget_only: bool = False) -> float:
        """Return texts of a section."""
        texts = self.texts(dataset).get(section, {})
        return texts.get("forget", 0) if forget_only else sum(texts.values())

    def tokens(self, dataset: str, cut: float) -> float:
        """Return mean tokens of a text that is cut at ``cut``."""
        definition = self.config["datasets"][dataset]
        if published := TABLE["datasets"].get(definition["kind"]):
            for (before, low), (after, high) in pairwise(published["tokens"]):
                if cut <= after:
                    return float(low + (high - low) * (cut - before) / (after - before))
            return float(published["tokens"][-1][1])
        if words := definition.get("words"):
            # A tokenizer of a few hundred pieces takes a made-up word for one token or little more.
            return min(cut, 0.6 * sum(words))
        size, texts = raw_size(definition), counted(dataset, self.root) or {}
        text_count = sum(sum(section.values()) for section in texts.values())
        return min(cut, size / text_count / 4.5 if size and text_count else 110.0)

    def _flop(self, rule: str, model: str, dataset: str, wildcards: Mapping[str, str]) -> float:
        """Return floating-point operations of a job with a language model."""
        config, training = self.config, self.config["models"][model]["training"]
        # Another workflow that imports this one puts a name before the rule's.
        names = (*TRAINING, "influence", *UNLEARNING, *READING)
        rule = next((name for name in names if re.fullmatch(rf"(.*_)?{name}", rule)), rule)
        if rule in UNLEARNING:
            unlearner = config["unlearners"][wildcards["unlearner"]]
            schedule = unlearner["training"]
            # Tokens may lie in all of the texts.
            every = schedule["steps"] == "matched" or of_tokens(
                config, wildcards.get("selector", "")
            )
            part = 1.0 if every else float(wildcards.get("beta", 1.0))
            cut = config["unlearning"]["max_length"] or config["tokens"]["max_length"]
            read = part * self.count(dataset, "inference", True) * self.tokens(dataset, cut)
            if not plugin("unlearner", unlearner["kind"]).trains:
                return 2 * read * forward_flop(self.size(model))
            changed = {**training, "trained_blocks": config["unlearning"]["trained_blocks"]}
            changed |= {"train_input_embedding": False, "train_output_head": False}
            # As many retain texts beside; and once over these for what asks of the start.
            return read * (2 * schedule["epochs"] + 1) * training_flop(self.size(model), changed)
        if rule in TRAINING or rule == "influence":
            size = self.size(model if rule == "contaminate" else arms.base(config, model) or model)
            section = "contamination" if rule == "contaminate" else "inference"
            read = self.count(dataset, section) * training["epochs"]
            if training["steps"] != "matched":
                part = 1.0 if rule == "gold" else float(wildcards.get("beta", 0))
                read -= part * self.count(dataset, section, True) * training["epochs"]
            if rule == "influence":
                # Two passes over the texts at each point, and gradients.
                read += 2 * config["influence"]["points"] * self.count(dataset, section)
            tokens = read * self.tokens(dataset, training["max_length"])
            return tokens * training_flop(size, training)
        where = "embedding" if rule.startswith("embed") else "evaluation"
        texts = self.count(dataset, "inference" if where == "embedding" else where)
        tokens = texts * self.tokens(dataset, config[where]["max_length"])
        share = READING.get(rule, 1.0)
        return share * tokens * forward_flop(self.size(model))

    def written(self, job: Job) -> tuple[float, float, float]:
        """Return bytes on disk of a job's model: of what stays, of what ``keep_checkpoints`` keeps,
        and of a checkpoint while it runs."""
        model = job.wildcards.get("model")
        if model not in self.config["models"] or job.rule not in (*TRAINING, *UNLEARNING):
            return 0.0, 0.0, 0.0
        trained = self.size(model).trained(self.config["models"][model]["training"])
        stays = job.rule in ("contaminate", "gold", "beta0", "unlearn_list")
        return 4.0 * trained * stays, 4.0 * trained * (not stays), float(STATE_BYTES * trained)
