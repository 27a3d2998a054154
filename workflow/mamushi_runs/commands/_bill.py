"""What jobs are expected to take: by those of their kind that have finished in this folder, else
from floating-point operations and sizes; and no time where neither says it within a factor of 2.

Operations per token and parameter: 2 forward; 2 more where the gradient passes through to what
lies before; 2 more for the gradient of a weight that is trained.
"""

from __future__ import annotations

import glob
import os
import re
import statistics
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config import arms, grid
from mamushi.config.selectors import of_tokens, selector_settings
from mamushi.config.sources import raw_size
from mamushi.registry import plugin
from mamushi_runs.commands._rates import CPU, Rate
from mamushi_runs.sizes import (
    STATE_BYTES,
    TABLE,
    Size,
    counted,
    expected_texts,
    needed,
    of,
    resident,
)

GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
SMALL_SECONDS = 0.5
"""Of a job that neither trains nor ranks."""
EPOCHS = 10
"""Of the selectors' networks in each fold, which stop early: measured on synthetic embeddings."""
TRAINING = ("contaminate", "gold", "beta0", "retrain")
MEASURED_TRAINING = ("influence",)
"""Rules that train beta 0 and measure texts along it, or at the weights of a model as it is."""
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list")
EDIT_TOKENS = 2**18
"""Tokens of both domains that an unlearner reads that trains nothing, at most."""
READING = {
    **{"embed": 1.0, "embed_layers": 1.0, "embed_shard": 1.0, "embed_layers_shard": 1.0},
    **{"evaluate": 1.0, "generate": 0.5, "judge": 0.5, "membership": 0.5, "relearn": 5.0},
    # Whose length nobody knows.
    **{"task_scores": 1.0},
}
"""Rules that run a model forward, and over how much of their texts, as a share."""
FINISHED = re.compile(r"took ([\d.]+) s, ([\d.]+) s of CPU\s*$")


def forward_flop(size: Size) -> float:
    """Return operations per token of a forward pass."""
    return 2.0 * size.multiplied


def training_flop(size: Size, training: Mapping[str, Any], cached: bool = False) -> float:
    """Return operations per token of a fine-tune's step: forward, and backward as far as is
    trained. Of a ``cached`` trunk, what lies before the first trained block is not computed."""
    if training["method"] != "partial":
        # Through all blocks. The weights beside adapters have no gradient; adapters are multiplied
        # with forward, backward and for theirs.
        full = training["method"] == "full"
        weights = size.multiplied if full else 3 * size.adapters(training)
        return forward_flop(size) + 2.0 * size.multiplied + 2.0 * weights
    blocks = min(int(training["trained_blocks"]), size.layers) * size.block
    inputs, head = bool(training["train_input_embedding"]), bool(training["train_output_head"])
    if size.tied:
        # One tensor, at both ends.
        inputs = head = inputs or head
    # Up to the input embedding if that is trained; else to the first trained block.
    through = size.multiplied if inputs else blocks + size.embedding
    forward = through if cached else size.multiplied
    return 2.0 * (forward + through + blocks + (size.embedding if head else 0))


def influence_flop(
    size: Size,
    training: Mapping[str, Any],
    texts: float,
    settings: Mapping[str, Any],
    cached: bool = False,
) -> float:
    """Return operations, for each token of a text, of what is measured beside a training: at each
    point a gradient, of targets of both domains, and two passes over the ``texts``."""
    forward = forward_flop(size)
    frozen = training["method"] == "partial" and not training["train_input_embedding"]
    if cached and frozen and not (size.tied and training["train_output_head"]):
        blocks = min(int(training["trained_blocks"]), size.layers)
        forward = 2.0 * (blocks * size.block + size.embedding)
    gradients = 2 * settings["targets"] * training_flop(size, training, cached)
    return float(settings["points"] * (gradients + 2 * texts * forward))


def influence_at_weights_flop(
    size: Size, training: Mapping[str, Any], texts: float, settings: Mapping[str, Any]
) -> float:
    """Return the same of a model as it is: gradients of batches, and of the targets of both halves
    of the ``texts``, and two passes over these."""
    gradients = settings["batches"] * training["batch_size"] + 4 * settings["targets"]
    flop = gradients * training_flop(size, training) + 2 * texts * forward_flop(size)
    return float(flop)


def score_seconds(settings: Mapping[str, Any], texts: float, forget: float, width: int) -> float:
    """Return seconds of one core to rank ``texts`` embeddings (``forget`` of them of that domain)
    by a selector of these settings and its ``kind``: fits to measurements of 6,000 to 80,000 texts.
    """
    kind, values, folds = settings["kind"], texts * width, settings.get("folds") or 5
    seconds = 0.6 + 1.5e-8 * values
    # An estimator is fitted on these, again and again, and scores all texts once.
    fitted = min(texts * (1 - 1 / folds), settings.get("fit_sample") or texts)
    fits = folds * settings.get("seeds_averaged", 1) * settings.get("repeats", 1)
    if layers := settings if kind == "mamushi" else settings.get("networks"):
        # Within each fold a stack fits as often as it has folds, and once more.
        inner = 0 if kind == "mamushi" else settings["repeats"] * folds * settings["inner_networks"]
        networks = folds * (layers["seeds_averaged"] + inner)
        products = 6 * sum(a * b for a, b in pairwise([width, *layers["hidden"], 1]))
        epochs = networks * min(EPOCHS, layers["epochs"])
        trained = fitted * (1 - layers["validation"]) * epochs
        seconds += 3 + products * (trained + texts / folds * networks / 3) / CPU["mlp"]
    if settings.get("solver", "sgd") != "sgd" or kind == "mamushi_words":
        # Ten steps of a logistic regression, each with three times the operations of its Hessian.
        seconds += 60 * fits * fitted * width**2 / CPU["double"]
    if kind in ("lr_maha", "gaussian"):
        seconds += 3 * values * width * (settings.get("folds") or 1) / CPU["double"]
    elif kind == "kcenter":
        seconds += forget**2 * (2 * width / CPU["mlp"] + 3e-8)
    elif kind in CPU["fits"] and settings.get("solver", "sgd") == "sgd":
        by_text, by_value = CPU["fits"][kind]
        seconds += fits / 5 * texts * (by_text + by_value * width)
    return float(seconds)


class Job(NamedTuple):
    """A job to do."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...] = ()
    log: str | None = None
    """The rule's pattern of the log, with the names of wildcards in it."""
    needs: tuple[int, ...] = ()
    """Numbers of the jobs that come before it."""
    uses: Mapping[str, float] = {}
    """What it takes of each resource by name: of the machine, or of a cluster's queue."""
    gpus: int = 0
    threads: int = 1
    memory_mb: float = 0.0


class Estimate(NamedTuple):
    """What one job is expected to take."""

    seconds: float | None
    """Of wall time; None where nothing says it."""
    source: str
    cores: float = 1.0
    """Of these seconds that are a processor's."""


class Bill:
    """Estimates the jobs of a configuration; ``root`` is the folder with ``results``, and without
    ``gpus`` the jobs that ask for one take a processor."""

    def __init__(
        self, config: Mapping[str, Any], rate: Rate, *, gpus: bool = True, root: Path = Path()
    ) -> None:
        self.config, self.rate, self.gpus, self.root = config, rate, gpus, root
        self.size = cache(lambda model: of(config, model, root))
        self.texts = cache(lambda dataset: expected_texts(config, dataset, root))
        self._estimates: dict[tuple[str, ...], Estimate] = {}
        self._logs = cache(self._read_logs)

    def estimate(self, job: Job) -> Estimate:
        """Return what a job takes, counted once for all its seeds."""
        key = (job.rule, *(f"{k}={v}" for k, v in job.wildcards.items() if k != "seed"))
        if key not in self._estimates:
            self._estimates[key] = self._finished(job) or self.computed(job)
        return self._estimates[key]

    def _finished(self, job: Job) -> Estimate | None:
        """Return what jobs of the kind took that have finished here: of all wildcards but the seed;
        else, of those that do not rank, of the same dataset, model and unlearner."""
        kinds = [{*job.wildcards} - {"seed"}]
        if job.rule not in ("score", "refits"):
            kinds.append({"dataset", "model", "unlearner"})
        for fixed in kinds if job.log else ():
            pattern = str(job.log)
            for name, value in job.wildcards.items():
                part = glob.escape(value) if name in fixed else "*"
                pattern = re.sub(rf"\{{{name}\b[^}}]*\}}", part, pattern)
            if times := self._logs(pattern):
                seconds, cores = (statistics.median(column) for column in zip(*times, strict=True))
                return Estimate(seconds, f"{len(times)} finished here", cores / max(seconds, 0.01))
        return None

    def _read_logs(self, pattern: str) -> list[tuple[float, float]]:
        """Return wall and processor seconds of the jobs whose logs have these paths."""
        times = []
        for path in sorted(self.root.glob(pattern))[:50]:
            with open(path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 200))
                if match := FINISHED.search(file.read().decode("utf-8", "replace")):
                    times.append((float(match[1]), float(match[2])))
        return times

    def computed(self, job: Job) -> Estimate:
        """Return what a job takes by its operations and sizes."""
        model, dataset = job.wildcards.get("model"), job.wildcards.get("dataset")
        if model is not None and model not in self.config["models"]:
            return Estimate(None, "another workflow's")
        works = [*TRAINING, *MEASURED_TRAINING, *UNLEARNING, *READING, "base_model"]
        rule = next((rule for rule in works if re.fullmatch(rf"(.*_)?{rule}", job.rule)), None)
        if rule is None or model is None or (dataset is None and rule != "base_model"):
            return Estimate(self._processor_seconds(job, model, dataset), "size, on a CPU core")
        flop, steps = self._work(rule, model, dataset, job.wildcards)
        if grid.is_tiny(self.config, model):
            # Unlearning opens a model twice, and looks at what it starts from.
            starts = 2 if rule in UNLEARNING else 1
            seconds = starts * CPU["start"] + steps * CPU["step"] * self.size(model).layers / 4
            return Estimate(seconds + flop / CPU["tiny"], "FLOP on a CPU core")
        if not job.gpus or not self.gpus:
            return Estimate(None, "none finished here, and processors differ too much")
        # Several share it, and wait for each other's part for half of the time.
        share = 1.0 if job.gpus == 1 else job.gpus / 2
        seconds = GPU_START + flop / self.rate.flops / share
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
            low, high = words
            uniform = definition.get("lengths", "uniform") == "uniform"
            return min(cut, 0.6 * (low + high) if uniform else 1.2 * (low * high) ** 0.5)
        texts = counted(dataset, self.root)
        size = raw_size(definition)
        text_count = (
            sum(sum(section.values()) for section in texts.values()) if texts and size else 0
        )
        return min(cut, size / text_count / 4.5 if text_count else 110.0)

    def _work(
        self, rule: str, model: str, dataset: str | None, wildcards: Mapping[str, str]
    ) -> tuple[float, float]:
        """Return floating-point operations and steps of a job with a language model."""
        config, training = self.config, self.config["models"][model]["training"]
        if rule == "base_model":
            changed = config["models"][model]["pretraining"]
            tokens = changed["epochs"] * sum(
                sum(
                    self.texts(name).get(changed["section"], {}).get(d, 0)
                    for d in changed["domains"]
                )
                * self.tokens(name, changed["max_length"])
                for name in changed["datasets"]
            )
            return 6.0 * self.size(model).multiplied * tokens, tokens / changed[
                "max_length"
            ] / changed["batch_size"]
        assert dataset is not None
        cached = config["execution"]["cache_trunk"]
        if rule in TRAINING:
            if rule != "contaminate":
                model = arms.base(config, model) or model
            section = "contamination" if rule == "contaminate" else "inference"
            whole, forget = (self.count(dataset, section, only) for only in (False, True))
            removed = 1.0 if rule == "gold" else float(wildcards.get("beta", 0))
            left = whole - removed * forget
            read = whole if training["steps"] == "matched" else left
            stepped = left if training["steps"] == "by_data" else whole
            tokens = read * training["epochs"] * self.tokens(dataset, training["max_length"])
            steps = stepped * training["epochs"] / training["batch_size"]
            return tokens * training_flop(self.size(model), training, cached), steps
        if rule in MEASURED_TRAINING:
            return self._influence_work(model, dataset, wildcards)
        if rule in UNLEARNING:
            return self._unlearning_work(model, dataset, wildcards)
        section = "inference" if rule.startswith("embed") else "evaluation"
        where = config["embedding" if rule.startswith("embed") else "evaluation"]
        share = READING[rule] / int(wildcards.get("scatteritem", "1").rpartition("-")[2])
        texts = share * self.count(dataset, section)
        tokens = texts * self.tokens(dataset, where["max_length"])
        return tokens * forward_flop(self.size(model)), texts / 64

    def _influence_work(
        self, model: str, dataset: str, wildcards: Mapping[str, str]
    ) -> tuple[float, float]:
        """Return floating-point operations and steps of a job that measures influence."""
        settings, training = self.config["influence"], self.config["models"][model]["training"]
        texts, tokens = (
            self.count(dataset, "inference"),
            self.tokens(dataset, training["max_length"]),
        )
        of = (self.size(model), training, texts, settings)
        if self.config["models"][model]["contaminated"]:
            return influence_at_weights_flop(*of) * tokens, settings["batches"] + texts / 32
        flop, steps = self._work("beta0", model, dataset, wildcards)
        flop += influence_flop(*of, self.config["execution"]["cache_trunk"]) * tokens
        return flop, steps + settings["points"] * texts / 32

    def _unlearning_work(
        self, model: str, dataset: str, wildcards: Mapping[str, str]
    ) -> tuple[float, float]:
        """Return floating-point operations and steps of a job that unlearns."""
        config, training = self.config, self.config["models"][model]["training"]
        unlearner = config["unlearners"][wildcards["unlearner"]]
        schedule = unlearner["training"]
        # Tokens may lie in all of the texts.
        every = schedule["steps"] == "matched" or of_tokens(config, wildcards.get("selector", ""))
        part = 1.0 if every else float(wildcards.get("beta", 1.0))
        texts = part * self.count(dataset, "inference", forget_only=True)
        cut = config["unlearning"]["max_length"] or config["tokens"]["max_length"]
        if not plugin("unlearner", unlearner["kind"]).trains:
            # An edit of the logits is fitted to states of both domains, which are read once.
            retain = self.count(dataset, "inference") - self.count(dataset, "inference", True)
            tokens = min((texts + retain) * self.tokens(dataset, cut), EDIT_TOKENS)
            return tokens * forward_flop(self.size(model)), (texts + retain) / 64
        changed = {**training, "trained_blocks": config["unlearning"]["trained_blocks"]}
        changed |= {"train_input_embedding": False, "train_output_head": False}
        # As many retain texts beside; and once over these for what asks of the start.
        tokens = texts * (2 * schedule["epochs"] + 1) * self.tokens(dataset, cut)
        # A step has both, and some passes more to weigh and to watch them.
        steps = 5 * texts * schedule["epochs"] / training["batch_size"]
        cached = config["execution"]["cache_trunk"]
        return tokens * training_flop(self.size(model), changed, cached), steps

    def _processor_seconds(self, job: Job, model: str | None, dataset: str | None) -> float:
        """Return the seconds of a job without a language model."""
        if job.rule == "model_card" and model is not None:
            # Digests of the weights.
            return 5 + self.size(model).parameters / 1e8
        if dataset is None or dataset not in self.config["datasets"]:
            return SMALL_SECONDS
        if job.rule in ("examples", "tokens"):
            texts = sum(sum(section.values()) for section in self.texts(dataset).values())
            return SMALL_SECONDS + texts * {"examples": 6e-4, "tokens": 2e-4}[job.rule]
        name = job.wildcards.get("selector")
        if job.rule not in ("score", "refits") or model is None or name is None:
            return SMALL_SECONDS
        return self._ranking_seconds(job, model, dataset, name)

    def _ranking_seconds(self, job: Job, model: str, dataset: str, name: str) -> float:
        """Return the seconds of a job that ranks, once or for its refits, on its threads."""
        definition, times = self.config["selectors"][name], 1
        if job.rule == "refits":
            refits = self.config["evidence"]["refits"]
            # A pair of halves is as much work as a whole.
            times = refits["whole"] + bool(definition.get("folds")) * refits["halves"]
        settings = {"kind": definition["kind"], **selector_settings(self.config, name)}
        texts = self.count(dataset, "inference")
        forget = self.count(dataset, "inference", forget_only=True)
        seconds = times * score_seconds(settings, texts, forget, self.size(model).hidden_size)
        folds = (definition.get("folds") or 1) * definition.get("seeds_averaged", 1)
        return seconds / min(folds, job.threads)

    def written(self, job: Job) -> tuple[float, float, float]:
        """Return bytes on disk of a job: of what stays, of what ``keep_checkpoints`` keeps, and of
        a checkpoint while it runs."""
        model, dataset = job.wildcards.get("model"), job.wildcards.get("dataset")
        if model not in self.config["models"] or dataset is None:
            return 20_000.0 * len(job.outputs), 0.0, 0.0
        size, training = self.size(model), self.config["models"][model]["training"]
        trained = size.trained(training)
        if job.rule in TRAINING or job.rule in UNLEARNING:
            stays = job.rule in ("contaminate", "gold", "beta0", "unlearn_list")
            kept = 0.0 if stays else 4.0 * trained
            return 4.0 * trained * stays + 60_000, kept, float(STATE_BYTES * trained)
        if job.rule.startswith(("embed", "import_embed", "join_")):
            depths = len(self.config["embedding"]["depths"]) if "layers" in job.rule else 1
            row = 2 * size.hidden_size * depths + 20
            return self.count(dataset, "inference") * row, 0.0, 0.0
        return 20_000.0 * len(job.outputs), 0.0, 0.0

    def describe(self, model: str, gpus: int) -> str:
        """Return a sentence on a model: how large it is, by what, and over what it is cut."""
        size, training = self.size(model), self.config["models"][model]["training"]
        text = f"{model}: {size.billions:.3g} billion parameters, {size.source}"
        if gpus > 1:
            memory = self.config["execution"]["gpu_memory"]
            kept, most = (f(size, training, gpus) / 1e9 for f in (resident, needed))
            text += (
                f"; cut over {gpus} GPUs, {kept:.0f} GB on each for its weights, gradients and "
                f"moments, up to {most:.0f} GB in a step before activations, of {memory:.0f} GB"
                f"{': too little' if most > memory else ''}; half of its time assumed for exchange"
            )
        return f"{text}."
