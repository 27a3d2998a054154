"""What a job computes, reads and writes: floating-point operations, tokens and bytes by rule.

Operations per token and parameter: 2 forward; 2 more where the gradient passes through to what
lies before; 2 more for the gradient of a weight that is trained. Attention's own products are left
out: at 128 tokens they are a hundredth.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config import arms
from mamushi.config import selectors as settings_of
from mamushi.config.grid import Config
from mamushi.config.sources import files
from mamushi.io import paths
from mamushi.io.domains import CONTAMINATION, DOMAINS, EVALUATION, FORGET, INFERENCE
from mamushi_runs.forecast import sizes
from mamushi_runs.forecast.rates import CPU, TABLE
from mamushi_runs.forecast.sizes import Size

FLOAT32, FLOAT16 = 4, 2
STATE = 3 * FLOAT32
"""Bytes of a checkpoint per trained parameter: its value and two moments."""
SMALL_FILE = 20_000
"""Bytes of a card, a log, a table of a run."""
FITS = {
    "mamushi_lr": (5e-5, 2e-7),
    "linear": (0.0, 1e-7),
    "lexical": (7e-4, 0.0),
    "mamushi_words": (5e-5, 0.0),
    "auto": (4e-3, 2.4e-6),
}
"""Seconds of a selector with five folds, by text and by value of the embeddings: measured on texts
of 30 words."""
NEWTON = 60
"""Operations of a logistic regression by text and pair of columns: ten steps, as measured, each
with three times the operations of its Hessian."""
EPOCHS = 10
"""Of the selectors' networks in each fold, which stop early: measured on synthetic embeddings."""

TRAINING = ("contaminate", "gold", "beta0", "retrain")
UNLEARNING = ("unlearn_whole", "unlearn_list", "unlearn")
EMBEDDING = ("embed", "embed_layers")
SHARD = "scatteritem"
"""The wildcard of a job that does a part of another's work."""
MODEL_RULES = (
    *(*TRAINING, *UNLEARNING, *EMBEDDING),
    *("evaluate", "generate", "relearn", "judge", "membership"),
)
SIZED = ("score", "refits")
"""Whose seconds follow from measured rates and the size of what is read."""


def known(rule: str) -> str | None:
    """Return our name of a rule that uses a model, which may have a prefix."""
    found = [name for name in MODEL_RULES if rule == name or rule.endswith(f"_{name}")]
    return max(found, key=len, default=None)


PUBLISHED: dict[str, dict[str, Any]] = TABLE["datasets"]
UNKNOWN_TEXTS, UNKNOWN_FORGET, UNKNOWN_TOKENS = 10_000, 0.2, 200.0
BYTES_OF_A_TEXT = 500
"""Of a table of texts that has not been read yet."""


class Work(NamedTuple):
    """What one job does."""

    flop: float = 0.0
    """Floating-point operations on the texts' own tokens."""
    steps: float = 0.0
    seconds: float = 0.0
    """Of a processor core, for what is no matter of a model's floating-point operations."""
    parts: int = 1
    """As many cores can share these seconds: networks or folds are computed side by side."""
    state: float = 0.0
    """Bytes of the checkpoint that is on disk while the job runs."""
    kept: float = 0.0
    """Bytes that ``keep_checkpoints`` adds to the outputs."""


def forward(size: Size, *, head: bool = True) -> float:
    """Return operations per token of a forward pass, with the output head or up to it."""
    return 2.0 * (size.multiplied - (0 if head else size.embedding))


def fine_tune(size: Size, training: Mapping[str, Any]) -> float:
    """Return operations per token of a fine-tune's step: forward, and backward as far as is
    trained."""
    if training["method"] != "partial":
        # Through all blocks. The weights beside adapters have no gradient; adapters are multiplied
        # with forward, backward and for theirs.
        full = training["method"] == "full"
        weights = size.multiplied if full else 3 * size.adapters(training)
        return forward(size) + 2.0 * size.multiplied + 2.0 * weights
    blocks = min(int(training["trained_blocks"]), size.layers) * size.block
    inputs, head = bool(training["train_input_embedding"]), bool(training["train_output_head"])
    if size.tied:
        # One tensor, at both ends.
        inputs = head = inputs or head
    # Up to the input embedding if that is trained; else to the first trained block.
    through = size.multiplied if inputs else blocks + size.embedding
    return forward(size) + 2.0 * through + 2.0 * (blocks + (size.embedding if head else 0))


def tail(size: Size, blocks: int) -> float:
    """Return operations per token of an unlearner's step behind a cached trunk: the last blocks, of
    which all is trained, and the frozen head."""
    mine = min(blocks, size.layers) * size.block
    return 2.0 * (mine + size.embedding) * 2 + 2.0 * mine


def selector(config: Config, name: str) -> dict[str, Any]:
    """Return what ``score_seconds`` asks of a selector, with those of networks that it names."""
    kind = config["selectors"][name]["kind"]
    return {"kind": kind, **settings_of.selector_settings(config, name)}


def score_seconds(settings: Mapping[str, Any], texts: float, forget: float, width: int) -> float:
    """Return seconds of one core to rank ``texts`` embeddings (``forget`` of them of that domain)
    by a selector of these settings and its ``kind``: fits to measurements of 6,000 to 80,000 texts.
    """
    kind, values, folds = settings["kind"], texts * width, settings.get("folds") or 5
    seconds = 0.6 + 1.5e-8 * values
    # An estimator is fitted on these, again and again, and scores all texts once.
    fitted = min(texts * (1 - 1 / folds), settings.get("fit_sample") or texts)
    mlp = settings if kind == "mamushi" else settings.get("networks")
    if mlp:
        # Within each fold a stack fits as often as it has folds, and once more.
        inner = 0
        if kind != "mamushi":
            inner = settings["repeats"] * folds * settings["inner_networks"]
        networks = folds * (mlp["seeds_averaged"] + inner)
        layers = [width, *mlp["hidden"], 1]
        products = 6 * sum(a * b for a, b in pairwise(layers))
        epochs = networks * min(EPOCHS, mlp["epochs"])
        trained = fitted * (1 - mlp["validation"]) * epochs
        seconds += 3 + products * (trained + texts / folds * networks / 3) / CPU["mlp"]
    fits = folds * settings.get("seeds_averaged", 1)
    sgd = settings.get("solver", "sgd") == "sgd"
    if not sgd or kind == "mamushi_words":
        seconds += NEWTON * fits * fitted * width**2 / CPU["double"]
    if kind == "lr_maha":
        seconds += 3 * values * width * (settings.get("folds") or 1) / CPU["double"]
    elif kind == "kcenter":
        seconds += forget**2 * (2 * width / CPU["mlp"] + 3e-8)
    elif sgd:
        by_text, by_value = FITS.get(kind, (0.0, 0.0))
        whole = fitted / (1 - 1 / folds)
        times = settings.get("repeats", 1) * fits / 5
        seconds += times * whole * (by_text + by_value * width)
    return float(seconds)


class Volumes:
    """Texts and tokens of the configured datasets: counted where they have been made, else from
    what is known of the raw data. ``root`` is the folder with ``results``."""

    def __init__(self, config: Config, root: str | os.PathLike[str] = ".") -> None:
        self.config, self.root = config, Path(root)
        self.counts = cache(self._count)

    def texts(self, dataset: str, section: str, domains: Iterable[str] = DOMAINS) -> float:
        """Return texts of these domains in a section."""
        counts = self.counts(dataset).get(section, {})
        return sum(counts.get(domain, 0) for domain in domains)

    def all_texts(self, dataset: str) -> float:
        """Return texts of all sections."""
        return sum(self.texts(dataset, section) for section in self.counts(dataset))

    def tokens(self, dataset: str, cut: float) -> float:
        """Return mean tokens of a text that is cut at ``cut``."""
        definition = self.config["datasets"][dataset]
        if definition["kind"] in PUBLISHED:
            points = PUBLISHED[definition["kind"]]["tokens"]
            for (before, low), (after, high) in pairwise(points):
                if cut <= after:
                    return float(low + (high - low) * (cut - before) / (after - before))
            return float(points[-1][1])
        # A tokenizer of a few hundred pieces takes a made-up word for one token or little more.
        words = definition.get("words")
        return min(cut, 1.2 * sum(words) / 2 if words else UNKNOWN_TOKENS)

    def _count(self, dataset: str) -> Mapping[str, Mapping[str, float]]:
        """Return texts by section and domain."""
        card = self.root / paths.DATA_CARD.format(dataset=dataset)
        try:
            found = json.loads(card.read_text(encoding="utf-8"))["counts"]["sections"]
            return dict(found)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        definition = self.config["datasets"][dataset]
        if "sizes" in definition:
            return dict(definition["sizes"])
        known = PUBLISHED.get(definition["kind"], {})
        total = known.get("texts")
        if total is None:
            with contextlib.suppress(OSError):
                total = sum(os.stat(path).st_size for path in files(definition)) / BYTES_OF_A_TEXT
        total = total or UNKNOWN_TEXTS
        if definition["kind"] == "table" and (passed := definition["forget"].get("screen")):
            # What a screen leaves out is not embedded.
            total = min(total, passed if passed >= 1 else passed * total)
        forget = known.get("forget", UNKNOWN_FORGET)
        shares = dict(zip(DOMAINS, (forget, 1 - forget), strict=True))
        most = definition["limit"]
        counts: dict[str, dict[str, float]] = {
            section: {domain: total * part * share for domain, share in shares.items()}
            for section, part in definition["sections"].items()
        }
        if "evaluation" in known:
            counts[EVALUATION] = known["evaluation"]
        return {
            section: {domain: min(n, most.get(domain) or n) for domain, n in each.items()}
            for section, each in counts.items()
        }


class Costs:
    """The work of the jobs of a configuration; ``root`` of ``volumes`` has ``results``."""

    def __init__(self, config: Config, volumes: Volumes) -> None:
        self.config, self.volumes = config, volumes
        self.size = cache(lambda model: sizes.of(config, model, volumes.root))

    def of(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        """Return the work of one job of ``rule``, by our name of it, with these wildcards."""
        sharded = self.config["execution"]["shards"] > 1 and SHARD not in wildcards
        if sharded and rule in EMBEDDING:
            # It puts together what others have embedded.
            return Work(seconds=5)
        kinds = (TRAINING, self._training), (UNLEARNING, self._unlearning)
        for rules, work in (*kinds, (MODEL_RULES, self._reading)):
            if rule in rules:
                return work(rule, wildcards["dataset"], wildcards["model"], wildcards)
        return self._processor(rule, wildcards)

    def _training(self, rule: str, dataset: str, model: str, wildcards: Mapping[str, str]) -> Work:
        training = self.config["models"][model]["training"]
        if rule != "contaminate":
            model = arms.base(self.config, model) or model
        size = self.size(model)
        section = CONTAMINATION if rule == "contaminate" else INFERENCE
        whole, forget = (self.volumes.texts(dataset, section, d) for d in (DOMAINS, [FORGET]))
        retrained = rule == "retrain"
        removed = float(wildcards.get("beta", 0)) if retrained else float(rule == "gold")
        left = whole - removed * forget
        read = whole if training["steps"] == "matched" else left
        stepped = left if training["steps"] == "by_data" else whole
        epochs, trained = float(training["epochs"]), size.trained(training)
        tokens = read * epochs * self.volumes.tokens(dataset, training["max_length"])
        measured = 0.0
        return Work(
            flop=tokens * fine_tune(size, training) + measured,
            steps=stepped * epochs // training["batch_size"],
            state=STATE * trained,
            kept=FLOAT32 * trained if retrained else 0.0,
        )

    def _unlearning(
        self, rule: str, dataset: str, model: str, wildcards: Mapping[str, str]
    ) -> Work:
        size, axes = self.size(model), self.config["unlearning"]
        training = self.config["unlearners"][wildcards["unlearner"]]["training"]
        selected = self.volumes.texts(dataset, INFERENCE, [FORGET])
        if training["steps"] != "matched":
            selected *= float(wildcards.get("beta", 1.0))
        cut = axes["max_length"] or self.config["tokens"]["max_length"]
        epochs, blocks = float(training["epochs"]), min(int(axes["trained_blocks"]), size.layers)
        # Blocks before the first that is trained: what they compute is cached once for a run, which
        # is little beside its jobs, or computed at each step.
        before = 2.0 * (size.layers - blocks) * size.block
        again = 0.0 if self.config["execution"]["cache_trunk"] else before
        step, trained = tail(size, blocks) + again, blocks * size.block
        how = self.config["models"][model]["training"]
        if how["method"] != "partial":
            # No block is frozen before all others, so that there is nothing to keep.
            again, step, trained = before, fine_tune(size, how), size.trained(how)
        # As many retain texts beside the forget texts; and once over these for what an unlearner
        # asks of the start (a saliency mask).
        seen = selected * (2 * epochs + 1) * self.volumes.tokens(dataset, cut)
        measured = 0.0
        return Work(
            flop=seen * step + measured,
            steps=selected * epochs // training["batch_size"],
            state=STATE * trained,
            kept=FLOAT32 * trained,
        )

    def _reading(self, rule: str, dataset: str, model: str, wildcards: Mapping[str, str]) -> Work:
        """Return the work of jobs that run a model forward: embedding, perplexity, probes of the
        endpoints."""
        size = self.size(model)
        if rule in EMBEDDING:
            share = 1 / int(wildcards.get(SHARD, "1").rpartition("-")[2])
            length = self.volumes.tokens(dataset, self.config["embedding"]["max_length"])
            tokens = self.volumes.texts(dataset, INFERENCE) * length
            return Work(flop=share * tokens * forward(size, head=False))
        if rule == "evaluate":
            return Work(flop=self._held(dataset) * forward(size))
        # Else a few prompts, token by token: bound by reading the weights, not by arithmetic.
        flop = self._answer(rule, model, dataset)
        return Work(flop=flop) if flop else Work(seconds=60.0)

    def _answer(self, question: str, model: str, dataset: str) -> float:
        """Return operations to answer a question; 0 where they are no matter."""
        each = forward(self.size(model))
        if question == "relearn":
            # It measures after each number of steps.
            measured = 1 + len(self.config["probe"]["relearning"]["steps"])
            return measured * self._held(dataset) * each
        if question == "membership":
            sections = (INFERENCE, EVALUATION)
            most = (self.volumes.texts(dataset, section, [FORGET]) for section in sections)
            texts = sum(min(self.config["left"]["texts"], number) for number in most)
            cut = self.config["evaluation"]["max_length"]
            return texts * self.volumes.tokens(dataset, cut) * each
        return 0.0

    def _processor(self, rule: str, wildcards: Mapping[str, str]) -> Work:
        """Return the work of jobs without a large model."""
        model, dataset = wildcards.get("model"), wildcards.get("dataset")
        if rule == "base_model" and model is not None:
            training = self.config["models"][model]["pretraining"]
            tokens = float(training["epochs"]) * sum(
                self.volumes.texts(name, training["section"], training["domains"])
                * self.volumes.tokens(name, training["max_length"])
                for name in training["datasets"]
            )
            steps = tokens / training["max_length"] / training["batch_size"]
            return Work(flop=6.0 * self.size(model).multiplied * tokens, steps=steps)
        if rule in ("model_card", "convert") and model is not None:
            # Digests of the weights.
            return Work(seconds=5 + FLOAT16 * self.size(model).parameters / 2e8)
        if rule in ("examples", "tokens") and dataset is not None:
            each = {"examples": 1.2e-3, "tokens": 2e-4}[rule]
            return Work(seconds=3 + self.volumes.all_texts(dataset) * each)
        if rule in SIZED and dataset is not None and model is not None:
            return self._ranking(rule, dataset, model, wildcards.get("selector", ""))
        return Work(seconds=1)

    def _ranking(self, rule: str, dataset: str, model: str, name: str) -> Work:
        texts, forget = (self.volumes.texts(dataset, INFERENCE, d) for d in (DOMAINS, [FORGET]))
        times, definition = 1, self.config["selectors"][name]
        parts = (definition.get("folds") or 1) * definition.get("seeds_averaged", 1)
        if rule == "refits":
            counts = self.config["evidence"]["refits"]
            # A pair of halves is as much work as a whole.
            times = counts["whole"] + bool(definition.get("folds")) * counts["halves"]
        given = (selector(self.config, name), texts, forget, self.size(model).hidden_size)
        return Work(seconds=times * score_seconds(*given), parts=parts)

    def _held(self, dataset: str) -> float:
        """Return held-out tokens whose perplexity is measured."""
        cut = self.config["evaluation"]["max_length"]
        return self.volumes.texts(dataset, EVALUATION) * self.volumes.tokens(dataset, cut)

    def output(self, rule: str, path: str, wildcards: Mapping[str, str]) -> float:
        """Return bytes of an output of a job of ``rule``."""
        model, dataset = wildcards.get("model"), wildcards.get("dataset")
        if model is not None and path.endswith(".safetensors"):
            size = self.size(model)
            training = self.config["models"][model]["training"]
            if rule in UNLEARNING and training["method"] == "partial":
                blocks = min(int(self.config["unlearning"]["trained_blocks"]), size.layers)
                return FLOAT32 * blocks * size.block
            made = path.endswith("/model.safetensors")
            return FLOAT32 * (size.parameters if made else size.trained(training))
        if path.endswith(("/embeddings.parquet", "/layers.parquet")) and model and dataset:
            width = self.size(model).hidden_size
            if rule == "embed_layers":
                width *= len(self.config["embedding"]["depths"])
            return self.volumes.texts(dataset, INFERENCE) * (FLOAT16 * width + 20)
        return SMALL_FILE
