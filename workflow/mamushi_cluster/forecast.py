"""How large models and datasets are before they are opened, and how long jobs take: by those of
their kind that finished here, else, with a language model on a GPU, by operations."""

import json
import re
import statistics
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config.kinds import Config
from mamushi.config.sources import files
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.registry import plugin

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("sizes.json").read_text("utf-8"))
"""The sizes of public models and datasets."""
BYTES_OF_A_TEXT, BYTES_OF_A_TOKEN, UNKNOWN_TEXTS, UNKNOWN_FORGET = 500, 4.5, 10_000, 0.2
RATE = 0.266 * 989e12
"""Floating-point operations per second of an H100 from the start to the end of a fine-tune: the
paper's share of the data sheet's, of its 105 minutes of padded texts."""
CORE_RATE = 1e11
"""The same of a core of a processor, half of what SmolLM2-135M has where that knows bf16."""
GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
TRAINING = ("endpoint", "retrain", "influence")
UNLEARNING = ("unlearn", "unlearn_whole", "unlearn_list")
DELETED = ("retrain", "unlearn", "unlearn_whole")
"""Rules whose model is deleted, unless it is to be kept."""
FINISHED = re.compile(r"took ([\d.]+) s, [\d.]+ s of CPU\s*$")


class Size(NamedTuple):
    """A decoder-only model's numbers of parameters; ``source`` says where they are from. An output
    head that is tied to the input embedding counts once."""

    parameters: int
    hidden_size: int
    layers: int
    vocabulary_size: int
    tied: bool
    source: str

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding, and as many of the output head."""
        return self.vocabulary_size * self.hidden_size

    @property
    def multiplied(self) -> int:
        """Parameters that every token is multiplied with: all but the rows of an input embedding
        that is no head as well."""
        return self.parameters - (0 if self.tied else self.embedding)

    def blocks(self, count: int) -> int:
        """Return the parameters of so many transformer blocks, at most all: what is neither
        embedding nor head."""
        return min(count, self.layers) * (self.multiplied - self.embedding) // self.layers

    def n_trained(self, training: Mapping[str, Any]) -> int:
        """Return how many parameters ``training`` trains, as ``lm.parameters.freeze`` does."""
        if training["method"] == "full":
            return self.parameters
        if training["method"] == "lora":
            # Beside each matrix its height and width times the rank: 22 widths of a usual block.
            return 22 * int(training["lora"]["rank"]) * self.layers * self.hidden_size
        ends = int(training["train_input_embedding"]) + int(training["train_output_head"])
        ends = min(ends, 1) if self.tied else ends
        return self.blocks(training["trained_blocks"]) + ends * self.embedding


def model_size(config: Config, model: str) -> Size:
    """Return the size of a configured model, from the first of these that there is: a tiny model's
    definition, its card, the weights in its folder, what is published of it, a number in its name
    ("-7b"), 8 billion. ``source`` says which."""
    definition = config["models"][model]
    if definition.get("family") is not None:
        blocks = 12 * definition["layers"] * definition["hidden_size"] ** 2
        ends = 2 * definition["vocabulary_size"] * definition["hidden_size"]
        return _llama_size(blocks + ends, "its definition")
    if "embeddings" in definition:
        return _llama_size(3e8, "assumed to be as wide as vectors of sentence encoders are")
    card = Path(paths.MODEL_CARD.format(model=model))
    if card.is_file():
        facts = read_json(card) | {"source": "its card"}
        return Size(**{name: facts[name] for name in Size._fields})
    source = Path(definition["source"] or "nowhere")
    if weights := sum(path.stat().st_size for path in source.glob("model*.safetensors")):
        return _llama_size(weights / 2, "its weights, if they are of 16 bits")
    if sizes := PUBLISHED["models"].get(source.name.lower()):
        return Size(*[*sizes, "published sizes"])
    word = r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])"
    if match := re.search(word, f"{source.name} {model}".lower()):
        unit = 1e9 if match[3] == "b" else 1e6
        return _llama_size(int(match[1] or 1) * float(match[2]) * unit, f'"{match[0]}" in its name')
    return _llama_size(8e9, "assumed to have 8 billion parameters")


def _llama_size(parameters: float, source: str) -> Size:
    """Return a model of so many parameters, shaped as Llama 3.1; small ones tie embeddings."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden, layers = max(64, round(4096 * scale)), max(1, round(32 * scale))
    vocabulary = min(128256, int(parameters / 4 / hidden))
    return Size(int(parameters), hidden, layers, vocabulary, parameters < 4e9, source)


def expected_texts(config: Config, dataset: str) -> Mapping[str, Mapping[str, float]]:
    """Return the texts of a dataset by section and domain: as its card counts them, of which a seed
    may draw some, else from its sizes, what is published of it, or how large its files are."""
    definition, card = config["datasets"][dataset], Path(paths.DATA_CARD.format(dataset=dataset))
    if card.is_file():
        counts, most = read_json(card)["counts"]["sections"], definition.get("draws", {})
        return {s: {d: min(n, most.get(d) or n) for d, n in counts[s].items()} for s in counts}
    if definition.get("sizes"):
        return dict(definition["sizes"])
    about = PUBLISHED["datasets"].get(definition["kind"], {"forget": UNKNOWN_FORGET})
    total = about.get("texts") or _raw_bytes(definition) / BYTES_OF_A_TEXT or UNKNOWN_TEXTS
    shares = {"forget": about["forget"], "retain": 1 - about["forget"]}
    texts = {
        section: {domain: total * share * of_all for domain, of_all in shares.items()}
        for section, share in definition["sections"].items()
    }
    return texts | ({"evaluation": about["evaluation"]} if "evaluation" in about else {})


def _raw_bytes(dataset: Mapping[str, Any]) -> int:
    return sum(path.stat().st_size for path in map(Path, files(dataset)) if path.is_file())


def mean_tokens(config: Config, dataset: str, cut: float) -> float:
    """Return the mean tokens of a text that is cut at ``cut``."""
    definition = config["datasets"][dataset]
    if published := PUBLISHED["datasets"].get(definition["kind"]):
        return min(cut, float(published["tokens"]))
    texts = sum(sum(section.values()) for section in expected_texts(config, dataset).values())
    return min(cut, (_raw_bytes(definition) / texts or BYTES_OF_A_TEXT) / BYTES_OF_A_TOKEN)


class Job(NamedTuple):
    """A job to do, with the path of its ``log``."""

    rule: str
    wildcards: Mapping[str, str]
    log: str = ""
    gpus: int = 0
    memory_mb: int = 0


def estimate(config: Config, job: Job) -> tuple[float | None, str]:
    """Return the seconds of a job, None where nothing says them, and what they are from: the median
    of finished jobs of its rule, dataset, model and unlearner; else, on GPUs, operations."""
    kind = {job.wildcards.get(name) for name in ("dataset", "model", "unlearner")}
    names = enumerate(Path(job.log).parts)
    pattern = "/".join(name if place < 3 or name in kind else "*" for place, name in names)
    if pattern and (finished := _seconds_of(pattern)):
        return statistics.median(finished), f"{len(finished)} finished here"
    seconds = gpu_seconds(config, job)
    return seconds, "FLOP" if seconds else "-"


@cache
def _seconds_of(pattern: str) -> list[float]:
    """Return the seconds of the jobs whose logs have these paths."""
    logs = filter(Path.is_file, Path().glob(pattern))
    ends = (path.read_text("utf-8", "replace")[-200:] for path in logs)
    return [float(match[1]) for match in map(FINISHED.search, ends) if match]


def gpu_seconds(config: Config, job: Job) -> float | None:
    """Return what a job with a language model takes on its GPUs; of others, nothing. GPUs that
    share a model wait for each other for half of the time."""
    if not job.gpus or "family" in config["models"][job.wildcards["model"]]:
        return None
    # A model that is deleted is measured in the same job.
    is_measured = job.rule in DELETED and not config["keep_checkpoints"]
    rules = [job.rule, *["evaluate"] * is_measured]
    flop = sum(_flop(config, job._replace(rule=rule)) for rule in rules)
    return GPU_START + flop / RATE / max(1.0, job.gpus / 2)


def core_hours(config: Config, rule: str, **wildcards: str) -> float:
    """Return the hours that a job with a language model takes on one core of a processor."""
    return _flop(config, Job(rule, wildcards)) / CORE_RATE / 3600


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
        removed = {"gold": 1.0, "retrain": beta}.get(role, 0.0) * (training["steps"] == "by_data")
        section = "contamination" if role == "contaminated" else "inference"
        # Influence reads the texts twice at each point, and takes gradients.
        passes = training["epochs"] + 2 * config["influence"]["points"] * (rule == "influence")
        read = tokens(section, training["max_length"], forget=1 - removed)
        return passes * read * training_flop(size, training)
    if rule == "cross_entropy":
        cut, is_ready = training["max_length"], config["models"][model].get("contaminated")
        is_folded = is_ready or "contamination" not in config["datasets"][dataset]["sections"]
        read = tokens("inference" if is_folded else "contamination", cut, forget=0)
        if is_folded:
            # Of each fold two models, on all others.
            read = (config["cross_entropy"]["folds"] - 1) * (read + tokens("inference", cut))
        passes = 2 * forward * tokens("inference", cut)
        return passes + training["epochs"] * read * training_flop(size, training)
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
    section, kind = ("inference", "embedding") if rule == "embed" else ("evaluation", "evaluation")
    passes = 5.0 if rule == "relearn" else 1.0
    return passes * forward * tokens(section, config[kind]["max_length"])


def training_flop(size: Size, training: Mapping[str, Any]) -> float:
    """Return operations per token of a fine-tune's step: of each parameter 2 forward, 2 more where
    the gradient passes through to what lies before, and 2 more where it is trained."""
    method, tied = training["method"], size.tied
    inputs = training["train_input_embedding"] or (tied and training["train_output_head"])
    weights, through = size.n_trained(training), size.multiplied
    if method == "partial" and not inputs:
        # Down to the first trained block.
        through = size.blocks(training["trained_blocks"]) + size.embedding
    elif method != "lora" and not tied:
        # Whose rows are looked up.
        weights -= size.embedding
    return 2.0 * (size.multiplied + through + weights)
