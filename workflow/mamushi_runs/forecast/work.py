"""What a job computes, reads and writes: floating-point operations, tokens and bytes by rule.

Operations per token and parameter: 2 forward; 2 more where the gradient passes through to what
lies before; 2 more for the gradient of a weight that is trained. Attention's own products are left
out: at 128 tokens they are a hundredth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from mamushi.artifacts.domains import CONTAMINATION, DOMAINS, EVALUATION, FORGET, INFERENCE
from mamushi.configuration import grid
from mamushi.configuration.grid import Config
from mamushi_runs.forecast import sizes
from mamushi_runs.forecast.sizes import Size
from mamushi_runs.forecast.volumes import Volumes

FLOAT32, FLOAT16, INT32 = 4, 2, 4
MOMENTS = 2
ADAM_TRAFFIC = 7 * FLOAT32
"""Bytes that a step of AdamW moves per trained parameter: weight and two moments are read and
written, the gradient is read."""
SMALL_FILE = 20_000
"""Bytes of a card, a log, a table of a run."""

TRAINING = ("contaminate", "gold", "beta0", "retrain")
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list", "unlearn_and_probe")
MODEL_RULES = (*TRAINING, *UNLEARNING, "embed", "evaluate", "generate", "relearn", "judge")
RULES = (
    *MODEL_RULES,
    *("examples", "model_card", "base_model", "tokens", "score", "remove", "manifests", "refine"),
    *("tables", "study_tables", "half_gap", "probes", "frontier", "diagnostics", "geometry"),
    *("runtime", "ranking", "qualitative", "evidence_tables", "figure"),
)


def known(rule: str) -> str | None:
    """Our name of a rule, which another workflow may have given a prefix; None for another."""
    if rule in RULES:
        return rule
    names = sorted(RULES, key=len, reverse=True)
    return next((name for name in names if rule.endswith(f"_{name}")), None)


@dataclass(frozen=True)
class Work:
    """What one job does."""

    flop: float = 0.0
    """Floating-point operations on the texts' own tokens."""
    padded_flop: float = 0.0
    """The same with the texts of training as long as they are padded to."""
    traffic: float = 0.0
    """Bytes that the optimizer moves in the GPU's memory."""
    weights: float = 0.0
    """Bytes of weights that are read from files."""
    steps: float = 0.0
    seconds: float = 0.0
    """Of a processor, for what is no matter of floating-point operations."""
    state: float = 0.0
    """Bytes of the checkpoint that is on disk while the job runs."""
    kept: float = 0.0
    """Bytes that ``keep_checkpoints`` adds to the outputs."""
    trunk: float = 0.0
    """Bytes of the cache that the jobs of a run share until the last one has ended."""
    trunk_flop: float = 0.0
    """Floating-point operations of whichever of them makes it."""


# --- operations per token -------------------------------------------------------------------------


def forward(size: Size, *, head: bool = True) -> float:
    """Operations per token of a forward pass, with the output head or up to it."""
    return 2.0 * (size.multiplied - (0 if head else size.embedding))


def fine_tune(size: Size, training: Mapping[str, Any]) -> float:
    """Operations per token of a fine-tune's step: forward, and backward as far as is trained."""
    blocks = min(int(training["trained_blocks"]), size.layers) * size.block
    inputs, head = bool(training["train_input_embedding"]), bool(training["train_output_head"])
    if size.tied:
        # One tensor, at both ends.
        inputs = head = inputs or head
    weights = blocks + (size.embedding if head else 0)
    # Up to the input embedding if that is trained; else to the first trained block.
    through = size.multiplied if inputs else blocks + size.embedding
    return forward(size) + 2.0 * through + 2.0 * weights


def head_share(size: Size) -> float:
    """The output head's share of a fine-tune's operations, when it is trained."""
    parts = {"trained_blocks": 3, "train_output_head": True, "train_input_embedding": True}
    return 6.0 * size.embedding / fine_tune(size, parts)


def tail(size: Size, blocks: int) -> float:
    """Operations per token of an unlearner's step behind a cached trunk: the last blocks, of which
    all is trained, and the frozen head."""
    mine = min(blocks, size.layers) * size.block
    return 2.0 * (mine + size.embedding) * 2 + 2.0 * mine


# --- jobs -----------------------------------------------------------------------------------------


class Costs:
    """The work of the jobs of a configuration; ``root`` is the folder with ``results``."""

    def __init__(self, config: Config, volumes: Volumes) -> None:
        self.config, self.volumes = config, volumes
        self.size = cache(lambda model: sizes.of(config, model, volumes.root))

    def of(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        """The work of one job of ``rule``, one of ``RULES``, with these wildcards."""
        if rule in TRAINING:
            return self._training(rule, wildcards)
        if rule in UNLEARNING:
            return self._unlearning(rule, wildcards)
        if rule in MODEL_RULES:
            return self._reading(rule, wildcards)
        return self._processor(rule, wildcards)

    def tiny(self, model: str | None) -> bool:
        """Whether a model is built here, and small enough for a processor."""
        return model in self.config["models"] and grid.is_tiny(self.config, str(model))

    def _training(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        dataset, model = wildcards["dataset"], self._trained_from(rule, wildcards["model"])
        training = self.config["models"][wildcards["model"]]["training"]
        size = self.size(model)
        section = CONTAMINATION if rule == "contaminate" else INFERENCE
        counts = {domain: self.volumes.texts(dataset, section, [domain]) for domain in DOMAINS}
        whole = sum(counts.values())
        if rule == "gold":
            counts[FORGET] = 0
        if rule == "retrain":
            counts[FORGET] *= 1 - float(wildcards["beta"])
        texts = sum(counts.values())
        if training["steps"] == "matched":
            texts = whole
        seen = texts * float(training["epochs"])
        cut, each = training["max_length"], fine_tune(size, training)
        steps = seen // training["batch_size"]
        trained = size.trained(training)
        measured = self._forward(model, dataset, EVALUATION) if rule == "retrain" else 0.0
        tensors = FLOAT32 * trained
        return Work(
            flop=seen * self.volumes.tokens(dataset, model, cut) * each + measured,
            padded_flop=seen * self.volumes.longest(dataset, model, cut) * each + measured,
            traffic=steps * ADAM_TRAFFIC * trained,
            weights=FLOAT16 * size.parameters,
            steps=steps,
            state=(1 + MOMENTS) * tensors,
            kept=tensors if rule == "retrain" else 0.0,
        )

    def _unlearning(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        dataset, model = wildcards["dataset"], wildcards["model"]
        size, axes = self.size(model), self.config["unlearning"]
        training = self.config["unlearners"][wildcards["unlearner"]]["training"]
        whole = self.volumes.texts(dataset, INFERENCE, [FORGET])
        selected = whole * float(wildcards.get("beta", 1.0))
        if training["steps"] == "matched":
            selected = whole
        cut = axes["max_length"] or self.config["tokens"]["max_length"]
        mean, longest = (
            measure(dataset, model, cut) for measure in (self.volumes.tokens, self.volumes.longest)
        )
        blocks = int(axes["trained_blocks"])
        before = self._trunk(size, blocks)
        # As many retain texts beside the forget texts; and once over these for what an unlearner
        # asks of the start (a saliency mask, reference likelihoods).
        seen = selected * (2 * float(training["epochs"]) + 1)
        steps = selected * float(training["epochs"]) // training["batch_size"]
        each, trained = tail(size, blocks), min(blocks, size.layers) * size.block
        cached = bool(self.config["execution"]["cache_trunk"])
        if not cached:
            each += before
        held = self.volumes.texts(dataset, EVALUATION) * self.volumes.tokens(
            dataset, model, self.config["evaluation"]["max_length"]
        )
        measured = held * (forward(size) - (before if cached else 0.0))
        if rule == "unlearn_and_probe":
            # Relearning measures after each number of steps.
            measured *= 2 + len(self.config["probe"]["relearning"]["steps"])
        kept_tokens = held + mean * self.volumes.texts(dataset, INFERENCE)
        return Work(
            flop=seen * mean * each + measured,
            padded_flop=seen * longest * each + measured,
            traffic=steps * ADAM_TRAFFIC * trained,
            weights=FLOAT16 * size.parameters + FLOAT32 * self._start_tensors(model),
            steps=steps,
            state=(1 + MOMENTS) * FLOAT32 * trained,
            kept=FLOAT32 * trained if rule in ("unlearn", "unlearn_and_probe") else 0.0,
            trunk=kept_tokens * size.hidden_size * FLOAT16 if cached else 0.0,
            trunk_flop=kept_tokens * before if cached else 0.0,
        )

    def _reading(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        """Jobs that run a model forward: embedding, perplexity, probes of the endpoints."""
        model, dataset = wildcards["model"], wildcards["dataset"]
        size = self.size(model)
        if rule == "embed":
            texts = self.volumes.texts(dataset, INFERENCE)
            length = self.volumes.tokens(dataset, model, self.config["embedding"]["max_length"])
            flop = texts * length * forward(size, head=False)
        elif rule == "evaluate":
            flop = self._forward(model, dataset, EVALUATION)
        elif rule == "relearn":
            times = 1 + len(self.config["probe"]["relearning"]["steps"])
            flop = times * self._forward(model, dataset, EVALUATION)
        else:
            # A few prompts, token by token: bound by reading the weights, not by arithmetic.
            flop = 0.0
        trained = size.trained(self.config["models"][model]["training"])
        return Work(
            flop=flop,
            padded_flop=flop,
            weights=FLOAT16 * size.parameters + FLOAT32 * trained,
            seconds=60.0 if rule in ("generate", "judge") and not self.tiny(model) else 0.0,
        )

    def _processor(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        """Jobs without a large model. Seconds are those of one processor, as far as is known."""
        model, dataset = wildcards.get("model"), wildcards.get("dataset")
        if rule == "base_model" and model is not None:
            size, training = self.size(model), self.config["models"][model]["pretraining"]
            tokens = sum(
                self.volumes.texts(name, training["section"], training["domains"])
                * self.volumes.tokens(name, model, training["max_length"])
                for name in training["datasets"]
            )
            flop = 6.0 * size.multiplied * tokens * float(training["epochs"])
            steps = tokens * float(training["epochs"]) / training["max_length"]
            return Work(flop=flop, padded_flop=flop, steps=steps / training["batch_size"])
        if rule == "model_card" and model is not None:
            # The digests of a folder's weights, or the download of a hub's.
            return Work(seconds=10 + FLOAT16 * self.size(model).parameters / 2e8)
        if rule == "examples" and dataset is not None:
            return Work(seconds=2 + self.volumes.all_texts(dataset) * 1.2e-3)
        if rule == "tokens" and dataset is not None:
            return Work(seconds=5 + self.volumes.all_texts(dataset) * 2e-4)
        if dataset is None or model is None:
            return Work(seconds=3)
        values = self.volumes.texts(dataset, INFERENCE) * self.size(model).hidden_size
        # The paper's run times, of 80,000 texts of width 2304.
        scaled = values / (80_000 * 2304)
        if rule == "score":
            kind = self.config["selectors"].get(wildcards["selector"], {}).get("kind", "")
            whole = {"mamushi": 47.0, "kcenter": 222.0, "mamushi_gbt": 200.0}.get(kind, 10.0)
            return Work(seconds=2 + whole * scaled)
        if rule == "runtime":
            repeats = self.config["evidence"]["runtime"]["repeats"]
            return Work(seconds=5 + 50.0 * scaled * repeats * len(self.config["grid"]["selectors"]))
        return Work(seconds=2 + {"geometry": 60.0, "frontier": 60.0}.get(rule, 1.0) * scaled)

    def _forward(self, model: str, dataset: str, section: str) -> float:
        """Operations of the perplexity of a section."""
        length = self.config["evaluation"]["max_length"]
        tokens = self.volumes.texts(dataset, section) * self.volumes.tokens(dataset, model, length)
        return tokens * forward(self.size(model))

    def _trunk(self, size: Size, blocks: int) -> float:
        """Operations per token of a forward pass up to the first trained block."""
        return 2.0 * max(0, size.layers - blocks) * size.block

    def _trained_from(self, rule: str, model: str) -> str:
        """The model that a fine-tune starts from."""
        return model if rule == "contaminate" else grid.base(self.config, model) or model

    def _start_tensors(self, model: str) -> int:
        """Parameters in the file of the model from which unlearning starts."""
        endpoint = grid.start(self.config, model)
        if grid.as_it_is(self.config, model, endpoint):
            return 0
        return self.size(model).trained(self.config["models"][model]["training"])

    # --- files ------------------------------------------------------------------------------------

    def output(self, rule: str, path: str, wildcards: Mapping[str, str]) -> float:
        """Bytes of an output of a job of ``rule``."""
        model, dataset = wildcards.get("model"), wildcards.get("dataset")
        name = path.rpartition("/")[2]
        if name == "trained.safetensors" and model is not None:
            size = self.size(model)
            if rule in UNLEARNING:
                blocks = min(int(self.config["unlearning"]["trained_blocks"]), size.layers)
                return FLOAT32 * blocks * size.block
            return FLOAT32 * size.trained(self.config["models"][model]["training"])
        if name == "model.safetensors" and model is not None:
            return FLOAT32 * self.size(model).parameters
        if dataset is None:
            return SMALL_FILE
        texts = self.volumes.texts(dataset, INFERENCE)
        if name == "embeddings.parquet" and model is not None:
            return texts * (FLOAT16 * self.size(model).hidden_size + 20)
        if rule == "tokens" and model is not None:
            length = self.volumes.tokens(dataset, model, self.config["tokens"]["max_length"])
            # Compressed to about half.
            return self.volumes.all_texts(dataset) * length * INT32 / 2
        if name == "examples.parquet":
            return self.volumes.all_texts(dataset) * 250
        if name == "ranking.html":
            return texts * 500
        if rule == "score":
            return texts * 20
        if rule == "remove":
            forget = self.volumes.texts(dataset, INFERENCE, [FORGET])
            return SMALL_FILE + forget * float(wildcards["beta"]) * 30
        return SMALL_FILE
