"""The settings of each stage: out of the whole configuration, just what the stage depends on.

A rule hands them to its command as one JSON object and keeps the same text as its parameter, so
that a change of configuration runs again exactly what it affects. ``code`` is the digest of the
definitions that the stage reaches. All functions take the configuration that ``complete`` gave.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mamushi.artifacts import digests, remote
from mamushi.artifacts.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.configuration import arms, grid
from mamushi.configuration.sources import files
from mamushi.errors import UserError
from mamushi.registry import plugin, plugins
from mamushi.running.identity import digest

Config = Mapping[str, Any]

SECTIONS: Mapping[str, tuple[str, list[str]]] = {
    "contaminated": (CONTAMINATION, [FORGET, RETAIN]),
    "beta0": (INFERENCE, [FORGET, RETAIN]),
    "gold": (INFERENCE, [RETAIN]),
    "gold_matched": (INFERENCE, [RETAIN]),
}
"""Endpoint -> the section and the domains that it is trained on."""

TABLES = ("sad", "sad_summary", "sad_differences", "selection")
"""What the stage ``tables`` writes, each as Parquet and CSV."""
UNLEARNING_TABLES = ("unlearning", "half_gap")
"""What the stage ``half_gap`` writes."""
PROBE_TABLES = ("generations", "relearning")
"""What the stage ``probes`` writes."""
LEFT_MODEL_TABLES = ("klom", "tell_models", "name_texts", "relapse", "utility")
"""What the stage ``left_models`` writes, beside ``utility_tasks`` where tasks are configured."""

LEFT_TABLES = ("membership", "memorization", "left")
"""What the stage ``left`` writes."""
EVIDENCE_TABLES = (
    *("frontier", "calibration", "advice", "diagnostics"),
    *("confounds", "geometry", "runtime", "paper", "theory"),
)
"""What the stage ``evidence`` writes."""

MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""

# Parts that several stages have ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a stage's results depend on beside its inputs; no ``code`` in a command by hand."""

    code: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell(Settings):
    """A dataset, a model and a seed."""

    dataset: str
    model: str
    seed: int

    @property
    def cell(self) -> dict[str, Any]:
        """The wildcards of the cell's folder, and the first columns of its tables."""
        return {"dataset": self.dataset, "model": self.model, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class Lora:
    """The section ``training.lora``: low-rank adapters."""

    rank: int
    alpha: float
    dropout: float
    target_modules: list[str] | None


@dataclass(frozen=True, kw_only=True)
class Method:
    """How parameters are trained, and the adapters of the method ``lora``."""

    method: str = "partial"
    lora: Lora | None = None


@dataclass(frozen=True, kw_only=True)
class Trained(Method):
    """Which parameters are trained."""

    trained_blocks: int
    train_input_embedding: bool
    train_output_head: bool
    train_final_norm: bool


@dataclass(frozen=True, kw_only=True)
class Training(Trained):
    """The section ``training`` of the configuration."""

    epochs: float
    batch_size: int
    learning_rate: float
    betas: list[float]
    epsilon: float
    weight_decay: float
    schedule: str
    warmup_steps: int
    gradient_clip: float | None
    max_length: int
    precision: str
    steps: str


@dataclass(frozen=True, kw_only=True)
class UnlearnTraining:
    """The section ``unlearning.training``."""

    epochs: float
    batch_size: int
    betas: list[float]
    epsilon: float
    weight_decay: float
    gradient_clip: float | None
    stop_window: int
    steps: str


@dataclass(frozen=True, kw_only=True)
class Opened:
    """How a model is opened: what its tensors hold, None without any, and its precision."""

    training: Trained | None
    precision: str


@dataclass(frozen=True, kw_only=True)
class Trains(Method):
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone."""

    trained_blocks: int


@dataclass(frozen=True, kw_only=True)
class OpenedArm(Opened):
    """How any model of a cell is opened: ``unlearned`` is what unlearning trained of it, where it
    was unlearned, and then the rest is of its start."""

    unlearned: Trains | None = None


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """The section ``embedding``, whatever the layer."""

    pooling: str
    skip_bos: bool
    max_length: int
    precision: str


@dataclass(frozen=True, kw_only=True)
class Embedding(Pooling):
    """The section ``embedding``."""

    layer: int


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The section ``evaluation``."""

    max_length: int


@dataclass(frozen=True, kw_only=True)
class Relearning:
    """The section ``probe.relearning``."""

    examples: int
    steps: list[int]
    batch_size: int
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """What a model is asked to continue."""

    prompts: list[str]
    new_tokens: int


@dataclass(frozen=True, kw_only=True)
class Relearn(Trains):
    """How a model is fine-tuned on a few texts, and what it is measured on."""

    seed: int
    max_length: int
    evaluation: Evaluation
    relearning: Relearning


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Which texts a model is asked about; Min-K takes the share ``least`` of the tokens."""

    texts: int
    max_length: int
    least: float


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """Which texts a model is to complete, from which shares of their tokens."""

    texts: int
    max_length: int
    prefixes: list[float]
    samples: int


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Tasks of lm-evaluation-harness; ``inputs`` are the files of tasks of one's own."""

    tasks: list[str]
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What a model is asked, by the names of the stages that ask it; those that train come last,
    and the one after which the model is another at the very end."""

    generate: Prompts | None = None
    membership: Membership | None = None
    extraction: Extraction | None = None
    tasks: Tasks | None = None
    relapse: Relearn | None = None
    relearn: Relearn | None = None


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A selector's kind and settings, under the name that the configuration gives it."""

    selector: str
    kind: str
    settings: dict[str, Any]


UNSAID: Mapping[str, Any] = {
    **vars(Method()),
    **vars(Questions()),
    **dict.fromkeys(["planted", "unlearned", "questions"]),
}
"""Values that are left out where settings are written down, and so of what results are compared by:
what was made before a key was there is what is made by its default."""


def as_json(settings: Settings | Mapping[str, Any]) -> str:
    """The settings as the one canonical text that is compared and handed over."""
    return json.dumps(
        settings if isinstance(settings, Mapping) else asdict(settings, dict_factory=_said),
        sort_keys=True,
    )


def _said(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {k: value for k, value in pairs if k not in UNSAID or value != UNSAID[k]}


def _code(stage: str, *plugins: str) -> str:
    return digest(f"mamushi.stages.{stage}", *plugins)


def _cell(dataset: str, model: str, seed: int) -> dict[str, Any]:
    return {"dataset": dataset, "model": model, "seed": seed}


def _training(config: Config, model: str) -> Training:
    training = config["models"][model]["training"]
    return Training(**{**training, **vars(_method(config, model))})


def _trained(config: Config, model: str) -> Trained:
    training = _training(config, model)
    return Trained(**{key: getattr(training, key) for key in Trained.__dataclass_fields__})


def _method(config: Config, model: str) -> Method:
    training = config["models"][model]["training"]
    adapters = Lora(**training["lora"]) if training["method"] == "lora" else None
    return Method(method=training["method"], lora=adapters)


def _opened(config: Config, model: str, endpoint: str) -> Opened:
    alone = arms.as_it_is(config, model, endpoint)
    # Trained from whatever base, an endpoint is trained as the model of its cell is.
    return Opened(
        training=None if alone else _trained(config, model),
        precision=config["models"][model]["training"]["precision"],
    )


# Data and models ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Examples(Settings):
    """Settings of the stage ``examples``; ``loader`` and ``kind`` are of the dataset's loader."""

    dataset: str
    kind: str
    loader: dict[str, Any]
    sections: dict[str, float]
    limit: dict[str, int | None]
    data: dict[str, Any]
    planted: dict[str, Any] | None = None
    inputs: dict[str, str] = field(default_factory=dict)


def examples(config: Config, dataset: str) -> Examples:
    definition = config["datasets"][dataset]
    loader = plugin("dataset", definition["kind"])
    return Examples(
        dataset=dataset,
        kind=definition["kind"],
        loader={key: definition[key] for key in loader.settings},
        sections=definition["sections"],
        limit=definition["limit"],
        data=config["data"],
        planted=definition["planted"],
        inputs={**_digests(files(definition)), **_remote(definition)},
        code=_code("examples", loader.module),
    )


def _remote(definition: Mapping[str, Any]) -> dict[str, str]:
    """What an object in a bucket is, by its path, where a dataset is one."""
    path = str(definition.get("path"))
    return {path: remote.identity(path)} if remote.is_remote(path) else {}


@dataclass(frozen=True, kw_only=True)
class BaseModel(Settings):
    """Settings of the stage ``base_model``: the tiny model's definition."""

    name: str
    sizes: dict[str, Any]
    pretraining: dict[str, Any]


def base_model(config: Config, model: str) -> BaseModel:
    definition = dict(config["models"][model])
    pretraining = definition.pop("pretraining")
    sizes = {k: v for k, v in definition.items() if k not in ("training", "contaminated", "base")}
    return BaseModel(name=model, sizes=sizes, pretraining=pretraining, code=_code("base_model"))


@dataclass(frozen=True, kw_only=True)
class Convert(Settings):
    """Settings of the stage ``convert``: the model of a GGUF file."""

    name: str
    contaminated: bool
    inputs: dict[str, str]


def convert(config: Config, model: str) -> Convert:
    definition = config["models"][model]
    return Convert(
        name=model,
        contaminated=definition["contaminated"],
        inputs=_digests([definition["source"]]),
        code=_code("convert"),
    )


@dataclass(frozen=True, kw_only=True)
class ModelCard(Settings):
    """Settings of the stage ``model_card``: where the model is."""

    name: str
    source: str
    revision: str | None
    trust_remote_code: bool
    contaminated: bool
    inputs: dict[str, str] = field(default_factory=dict)


def model_files(config: Config, model: str) -> list[str]:
    """The files of a model in a folder, with its code where that is trusted; none of the hub's.

    Raises ``UserError`` for what is no language model.
    """
    if reason := grid.no_language_model(config, model):
        raise UserError(reason)
    definition = config["models"][model]
    folder = os.path.expanduser(definition["source"] or "")
    code = [".py"] if definition["trust_remote_code"] else []
    endings = (*MODEL_FILES, *code)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(endings)]


def _digests(paths: Iterable[str]) -> dict[str, str]:
    """SHA-256 by name of the files that come from outside, so that another one runs again what
    reads it, whatever its date; a dry run does without those that are not there yet."""
    return {os.path.basename(path): digests.of(path) for path in paths if os.path.isfile(path)}


def model_card(config: Config, model: str) -> ModelCard:
    definition = config["models"][model]
    keys = ("source", "revision", "trust_remote_code", "contaminated")
    return ModelCard(
        name=model,
        **{key: definition[key] for key in keys},
        inputs=_digests(model_files(config, model)),
        code=_code("model_card"),
    )


@dataclass(frozen=True, kw_only=True)
class Tokens(Settings):
    """Settings of the stage ``tokens``."""

    max_length: int


def tokens(config: Config) -> Tokens:
    return Tokens(**config["tokens"], code=_code("tokens"))


# Training, embedding, perplexity --------------------------------------------------------------


def _evaluation(config: Config) -> Evaluation:
    return Evaluation(max_length=config["evaluation"]["max_length"])


@dataclass(frozen=True, kw_only=True)
class FineTune(Cell):
    """Settings of the stage ``finetune`` for contaminated, gold or beta 0."""

    role: str
    section: str
    domains: list[str]
    training: Training


def endpoint(config: Config, dataset: str, model: str, seed: int, role: str) -> FineTune:
    section, domains = SECTIONS[role]
    training = _training(config, model)
    if role != "gold":
        # Matched to the steps of beta 0 or not is the same for contaminated and beta 0.
        training = replace(training, steps="matched" if role == "gold_matched" else "by_data")
    return FineTune(
        **_cell(dataset, model, seed),
        role=role,
        section=section,
        domains=domains,
        training=training,
        code=_code("finetune"),
    )


@dataclass(frozen=True, kw_only=True)
class Retrain(FineTune):
    """Settings of the stage ``retrain``: beta 0 but for the removal list, and measured."""

    evaluation: Evaluation
    questions: Questions | None = None


def retrain(
    config: Config, dataset: str, model: str, seed: int, *, asked: Sequence[str] = ()
) -> Retrain:
    section, domains = SECTIONS["beta0"]
    return Retrain(
        **_cell(dataset, model, seed),
        role="retrained",
        section=section,
        domains=domains,
        training=_training(config, model),
        evaluation=_evaluation(config),
        questions=_questions(config, model, seed, asked),
        code=_code("retrain", *_answering(asked)),
    )


@dataclass(frozen=True, kw_only=True)
class Embed(Settings):
    """Settings of the stage ``embed``; no ``training`` for a model that embeds as it is."""

    embedding: Embedding
    training: Trained | None


def embed(config: Config, model: str) -> Embed:
    given = {key: value for key, value in config["embedding"].items() if key != "depths"}
    return Embed(
        embedding=Embedding(**given),
        training=_embedder(config, model),
        code=_code("embed"),
    )


def _embedder(config: Config, model: str) -> Trained | None:
    ready = config["models"][model].get("contaminated", False)
    return None if ready else _trained(config, model)


@dataclass(frozen=True, kw_only=True)
class EmbedLayers(Settings):
    """Settings of the stage ``embed_layers``, as those of ``embed``."""

    embedding: Pooling
    training: Trained | None
    depths: list[float]


def embed_layers(config: Config, model: str) -> EmbedLayers:
    given = dict(config["embedding"])
    depths, _ = given.pop("depths"), given.pop("layer")
    return EmbedLayers(
        embedding=Pooling(**given),
        training=_embedder(config, model),
        depths=depths,
        code=_code("embed_layers"),
    )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where a file of vectors has them; an array has neither."""

    id: str
    vector: str


@dataclass(frozen=True, kw_only=True)
class ImportEmbeddings(Settings):
    """Settings of the stage ``import_embeddings``: vectors that were made elsewhere."""

    embedding: Columns
    inputs: dict[str, str] = field(default_factory=dict)


def vector_files(config: Config, model: str) -> tuple[str | None, str | None]:
    """The files of embeddings made elsewhere: the vectors, and the ids of an array."""
    given = config["models"][model]["embeddings"]
    return given["path"], given["ids"]


def import_embeddings(config: Config, model: str) -> ImportEmbeddings:
    given = config["models"][model]["embeddings"]
    return ImportEmbeddings(
        embedding=Columns(id=given["id"], vector=given["vector"]),
        inputs=_digests(path for path in vector_files(config, model) if path),
        code=_code("import_embeddings"),
    )


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Where a sentence encoder is."""

    source: str
    revision: str | None


@dataclass(frozen=True, kw_only=True)
class Encode(Settings):
    """Settings of the stage ``encode``; ``inputs`` are a folder's files by their names in it."""

    embedding: Encoder
    inputs: dict[str, str] = field(default_factory=dict)


def encoder_files(config: Config, model: str) -> list[str]:
    """The files of an encoder in a folder, with those in its sub-folders; none of the hub's."""
    folder = os.path.expanduser(config["models"][model]["source"] or "")
    found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.endswith(MODEL_FILES))


def encode(config: Config, model: str) -> Encode:
    definition = config["models"][model]
    folder = os.path.expanduser(definition["source"] or "")
    return Encode(
        embedding=Encoder(source=definition["source"] or "", revision=definition["revision"]),
        inputs={
            os.path.relpath(path, folder): digests.of(path) for path in encoder_files(config, model)
        },
        code=_code("encode"),
    )


@dataclass(frozen=True, kw_only=True)
class Evaluate(Opened, Settings):
    """Settings of the stage ``evaluate``."""

    evaluation: Evaluation


def evaluate(config: Config, model: str, arm: str) -> Evaluate:
    return Evaluate(
        **vars(_opened(config, model, arm)),
        evaluation=_evaluation(config),
        code=_code("evaluate"),
    )


# Selection ------------------------------------------------------------------------------------


def selector(config: Config, name: str) -> Chosen:
    """A selector as the configuration defines it."""
    definition = config["selectors"][name]
    known = plugin("selector", definition["kind"])
    settings = {key: definition[key] for key in known.settings}
    # So that another setting of those networks is another ranking.
    key = known.literals.get("NETWORKS")
    if key and settings[key] is not None:
        settings[key] = selector(config, settings[key]).settings
    return Chosen(selector=name, kind=definition["kind"], settings=settings)


def derives(config: Config, name: str) -> str | None:
    """The selector whose scores this one is derived from, if any."""
    definition = config["selectors"][name]
    key = plugin("selector", definition["kind"]).literals.get("DERIVES")
    return str(definition[key]) if key else None


def reads_layers(config: Config, name: str) -> bool:
    """Whether a selector reads the texts at other depths than that of the embedding."""
    definition = config["selectors"][name]
    key = plugin("selector", definition["kind"]).literals.get("DEPTHS")
    return key is not None and any(depth != 1 for depth in definition[key])


@dataclass(frozen=True, kw_only=True)
class Score(Chosen, Settings):
    """Settings of the stage ``score``."""

    seed: int


def score(config: Config, name: str, seed: int) -> Score:
    chosen = selector(config, name)
    module = plugin("selector", chosen.kind).module
    return Score(**vars(chosen), seed=seed, code=_code("score", module))


@dataclass(frozen=True, kw_only=True)
class Refits(Score):
    """Settings of the stage ``refits``: those of the scores, and the numbers of refits."""

    whole: int
    halves: int


def refits(config: Config, name: str, seed: int) -> Refits:
    chosen = selector(config, name)
    module = plugin("selector", chosen.kind).module
    return Refits(
        **vars(chosen), seed=seed, **config["evidence"]["refits"], code=_code("refits", module)
    )


@dataclass(frozen=True, kw_only=True)
class Stability(Settings):
    """Settings of the stage ``stability``."""

    budgets: list[float]


def stability(config: Config) -> Stability:
    return Stability(budgets=grid.budgets(config), code=_code("stability"))


@dataclass(frozen=True, kw_only=True)
class Remove(Settings):
    """Settings of the stages ``remove``, ``weigh`` and ``spans``, which depend on what they read
    and the budget alone."""

    beta: float


def remove(config: Config, beta: str) -> Remove:
    return Remove(beta=float(beta), code=_code("remove"))


def weigh(config: Config, beta: str) -> Remove:
    """Settings of the stage ``weigh``."""
    return Remove(beta=float(beta), code=_code("weigh"))


@dataclass(frozen=True, kw_only=True)
class TokenRatio(Cell):
    """Settings of the stage ``token_ratio``: how both models are trained."""

    training: Training


def token_ratio(config: Config, dataset: str, model: str, seed: int) -> TokenRatio:
    training = replace(_training(config, model), steps="by_data")
    cell = _cell(dataset, model, seed)
    return TokenRatio(**cell, training=training, code=_code("token_ratio"))


def spans(config: Config, beta: str) -> Remove:
    """Settings of the stage ``spans``."""
    return Remove(beta=float(beta), code=_code("spans"))


@dataclass(frozen=True, kw_only=True)
class Manifests(Chosen, Cell):
    """Settings of the stage ``manifests``."""

    budgets: list[float]


def manifests(config: Config, dataset: str, model: str, seed: int, name: str) -> Manifests:
    chosen = selector(config, name)
    if grid.action(config, name) != "remove":
        chosen.settings["action"] = grid.action(config, name)
    return Manifests(
        **_cell(dataset, model, seed),
        **vars(chosen),
        budgets=grid.budgets(config),
        code=_code("manifests"),
    )


# Unlearning -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Started(Trains):
    """The model that unlearning starts from, and what of it is trained then."""

    start: Opened
    max_length: int
    evaluation: Evaluation


def _trains(config: Config, model: str) -> Trains:
    blocks = config["unlearning"]["trained_blocks"]
    return Trains(**vars(_method(config, model)), trained_blocks=blocks)


@dataclass(frozen=True, kw_only=True)
class Unlearn(Started, Cell):
    """Settings of the stage ``unlearn``; the same for every selector, budget and list."""

    unlearner: str
    kind: str
    settings: dict[str, Any]
    training: UnlearnTraining
    questions: Questions | None = None
    inputs: dict[str, str] = field(default_factory=dict)


def unlearn(
    config: Config,
    dataset: str,
    model: str,
    seed: int,
    name: str,
    *,
    asked: Sequence[str] = (),
) -> Unlearn:
    definition = config["unlearners"][name]
    known = plugin("unlearner", definition["kind"])
    return Unlearn(
        **_cell(dataset, model, seed),
        **vars(_trains(config, model)),
        start=_opened(config, model, arms.start(config, model)),
        max_length=config["unlearning"]["max_length"],
        evaluation=_evaluation(config),
        unlearner=name,
        kind=definition["kind"],
        settings={key: definition[key] for key in known.settings},
        training=UnlearnTraining(**definition["training"]),
        questions=_questions(config, model, seed, asked),
        code=_code("unlearn", known.module, *_answering(asked)),
    )


def unlearn_list(
    config: Config, dataset: str, model: str, seed: int, name: str, removal: str
) -> Unlearn:
    """Settings of the stage ``unlearn`` for the removal list of one's own that is called so."""
    path = config["unlearning"]["lists"][removal]
    plain = unlearn(config, dataset, model, seed, name)
    return replace(plain, inputs=_digests([path] if path else []))


@dataclass(frozen=True, kw_only=True)
class Refine(Settings):
    """Settings of the stage ``refine``."""

    dataset: str
    model: str
    unlearner: str
    selector: str
    start: str
    seeds: list[int]
    budgets: list[float]
    fine: float | None
    target: float


def refine(config: Config, dataset: str, model: str, unlearner: str, selector: str) -> Refine:
    axes = config["unlearning"]
    return Refine(
        dataset=dataset,
        model=model,
        unlearner=unlearner,
        selector=selector,
        start=arms.start(config, model),
        **{key: axes[key] for key in ("seeds", "budgets", "fine", "target")},
        code=_code("refine"),
    )


def swept(config: Config) -> dict[str, Any]:
    """The axes of ``unlearning``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    return {key: config["unlearning"][key] for key in keys}


def probed(config: Config) -> dict[str, Any]:
    """The axes of ``probe``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budget")
    return {key: config["probe"][key] for key in keys}


@dataclass(frozen=True, kw_only=True)
class Collected(Settings):
    """Settings of a stage that collects what a grid measured."""

    grid: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HalfGap(Collected):
    """Settings of the stage ``half_gap``; ``starts`` are the endpoints by model."""

    starts: dict[str, str]
    target: float
    retain_cap: float


def _starts(config: Config, axes: Mapping[str, Any]) -> dict[str, str]:
    """By model, the endpoint from which unlearning starts."""
    return {model: arms.start(config, model) for model in axes["models"]}


def half_gap(config: Config) -> HalfGap:
    axes = config["unlearning"]
    return HalfGap(
        grid=swept(config),
        starts=_starts(config, axes),
        **{key: axes[key] for key in ("target", "retain_cap")},
        code=_code("half_gap"),
    )


# Questions to models --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Ask(Settings):
    """Settings of the stage ``ask``: how the model is opened, and the question."""

    model: OpenedArm
    questions: Questions


def ask(config: Config, model: str, seed: int, arm: str, *, name: str) -> Ask:
    one = arms.Arm.parse(arm)
    opened = _opened(config, model, one.origin(config, model))
    questions = _questions(config, model, seed, [name])
    assert questions is not None
    return Ask(
        model=OpenedArm(
            **vars(opened), unlearned=_trains(config, model) if one.unlearner else None
        ),
        questions=questions,
        code=_code("ask", *_answering([name])),
    )


def _questions(config: Config, model: str, seed: int, names: Sequence[str]) -> Questions | None:
    makers = {
        "generate": _generate,
        "membership": _membership,
        "extraction": _extraction,
        "tasks": _tasks,
    }
    asked: dict[str, Any] = {
        name: makers[name](config) if name in makers else _relearn(config, model, seed)
        for name in names
    }
    return Questions(**asked) if asked else None


def _answering(names: Iterable[str]) -> list[str]:
    """The code of answers that a stage imports by name, so that a change of it runs again just the
    jobs that ask."""
    return [f"mamushi.stages.questions.{name}.answer" for name in names]


def _generate(config: Config) -> Prompts:
    return Prompts(**{key: config["probe"][key] for key in ("prompts", "new_tokens")})


def _relearn(config: Config, model: str, seed: int) -> Relearn:
    return Relearn(
        **vars(_trains(config, model)),
        seed=seed,
        max_length=config["unlearning"]["max_length"],
        evaluation=_evaluation(config),
        relearning=Relearning(**config["probe"]["relearning"]),
    )


def _membership(config: Config) -> Membership:
    asked = {key: config["left"][key] for key in ("texts", "least")}
    return Membership(**asked, max_length=config["evaluation"]["max_length"])


def _extraction(config: Config) -> Extraction:
    return Extraction(**config["left"]["extraction"], max_length=config["evaluation"]["max_length"])


def _tasks(config: Config) -> Tasks:
    asked = config["utility"]["tasks"]
    return Tasks(tasks=asked, inputs=_digests(asked))


@dataclass(frozen=True, kw_only=True)
class Judge(Opened, Cell):
    """Settings of the stage ``judge``: the gold model reads what all models of a cell said."""


def judge(config: Config, dataset: str, model: str, seed: int) -> Judge:
    return Judge(
        **_cell(dataset, model, seed),
        **vars(_opened(config, model, "gold")),
        code=_code("judge"),
    )


@dataclass(frozen=True, kw_only=True)
class Probes(Collected):
    """Settings of the stage ``probes``."""

    starts: dict[str, str]


def probes(config: Config) -> Probes:
    return Probes(
        grid=probed(config), starts=_starts(config, config["probe"]), code=_code("probes")
    )


@dataclass(frozen=True, kw_only=True)
class LeftModels(Collected):
    """Settings of the stage ``left_models``; ``deleted`` has the axes of the models that are
    probed, ``starts`` the endpoints that unlearning starts from, by model."""

    deleted: dict[str, Any]
    starts: dict[str, str]
    tasks: list[str]


def left_models(config: Config) -> LeftModels:
    axes = grid.probed(config)
    return LeftModels(
        grid=grid.comparison(config),
        deleted=axes,
        starts=_starts(config, axes),
        tasks=config["utility"]["tasks"],
        code=_code("left_models"),
    )


def asked_left(config: Config) -> dict[str, Any]:
    """The axes of ``left``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    return {key: config["left"][key] for key in keys}


@dataclass(frozen=True, kw_only=True)
class Left(Collected):
    """Settings of the stage ``left``; ``ready`` are the models that were trained before."""

    starts: dict[str, str]
    ready: list[str]


def left(config: Config) -> Left:
    names = config["left"]["models"]
    return Left(
        grid=asked_left(config),
        starts=_starts(config, config["left"]),
        ready=[name for name in names if config["models"][name].get("contaminated")],
        code=_code("left"),
    )


# Evidence -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Calibrate(Cell):
    """Settings of the stage ``calibrate``; ``selector`` is the one that estimates the ratio."""

    selector: str
    resamples: int


def calibrate(config: Config, dataset: str, model: str, seed: int) -> Calibrate:
    return Calibrate(
        **_cell(dataset, model, seed),
        selector=config["removal"]["ratio"],
        resamples=config["evidence"]["resamples"],
        code=_code("calibrate"),
    )


@dataclass(frozen=True, kw_only=True)
class Frontier(Cell):
    """Settings of the stage ``frontier``; ``by_chance`` says of each selector whether it ranks
    without a look at the texts."""

    budgets: list[float]
    by_chance: dict[str, bool]
    resamples: int


def _by_chance(config: Config, selectors: Iterable[str]) -> dict[str, bool]:
    """Of each selector whether it ranks by chance."""
    kinds = {name: config["selectors"][name]["kind"] for name in selectors}
    return {
        name: bool(plugin("selector", kind).literals.get("BY_CHANCE"))
        for name, kind in kinds.items()
    }


def frontier(config: Config, dataset: str, model: str, seed: int) -> Frontier:
    return Frontier(
        **_cell(dataset, model, seed),
        budgets=sorted({*config["evidence"]["budgets"], *config["grid"]["budgets"]}),
        by_chance=_by_chance(config, config["grid"]["selectors"]),
        resamples=config["evidence"]["resamples"],
        code=_code("frontier"),
    )


@dataclass(frozen=True, kw_only=True)
class Diagnostics(Cell):
    """Settings of the stage ``diagnostics``."""


def diagnostics(config: Config, dataset: str, model: str, seed: int) -> Diagnostics:
    return Diagnostics(dataset=dataset, model=model, seed=seed, code=_code("diagnostics"))


@dataclass(frozen=True, kw_only=True)
class Confounds(Cell):
    """Settings of the stage ``confounds``."""


def confounds(config: Config, dataset: str, model: str, seed: int) -> Confounds:
    return Confounds(**_cell(dataset, model, seed), code=_code("confounds"))


@dataclass(frozen=True, kw_only=True)
class Triage(Cell):
    """Settings of the stage ``triage``; ``selector`` is the one that estimates the ratio."""

    selector: str


def triage(config: Config, dataset: str, model: str, seed: int) -> Triage:
    return Triage(
        **_cell(dataset, model, seed),
        selector=config["removal"]["ratio"],
        code=_code("triage"),
    )


@dataclass(frozen=True, kw_only=True)
class Geometry(Cell):
    """Settings of the stage ``geometry``."""

    components: int


def geometry(config: Config, dataset: str, model: str, seed: int) -> Geometry:
    return Geometry(
        **_cell(dataset, model, seed),
        components=config["evidence"]["components"],
        code=_code("geometry"),
    )


@dataclass(frozen=True, kw_only=True)
class Runtime(Cell):
    """Settings of the stage ``runtime``; ``bases`` are what derived selectors start from."""

    selectors: list[Chosen]
    bases: list[Chosen]
    repeats: int
    threads: int


def timed(config: Config) -> tuple[list[str], list[str]]:
    """The selectors that are timed, and what others of them start from."""
    names = list(config["grid"]["selectors"])
    bases: list[str] = []
    for name in names:
        while (found := derives(config, name)) is not None and found not in names + bases:
            bases.append(found)
            name = found
    return names, bases


def runtime(config: Config, dataset: str, model: str, seed: int) -> Runtime:
    names, bases = timed(config)
    chosen = [selector(config, name) for name in names + bases]
    modules = {plugin("selector", each.kind).module for each in chosen}
    return Runtime(
        **_cell(dataset, model, seed),
        selectors=chosen[: len(names)],
        bases=chosen[len(names) :],
        **config["evidence"]["runtime"],
        code=_code("runtime", *sorted(modules)),
    )


@dataclass(frozen=True, kw_only=True)
class Ranking(Cell):
    """Settings of the stage ``ranking``."""

    budgets: list[float]


def ranking(config: Config, dataset: str, model: str, seed: int) -> Ranking:
    return Ranking(
        **_cell(dataset, model, seed),
        budgets=grid.budgets(config),
        code=_code("ranking"),
    )


@dataclass(frozen=True, kw_only=True)
class Qualitative(Settings):
    """Settings of the stage ``qualitative``."""

    cells: list[dict[str, Any]]
    selector: str


def qualitative(config: Config) -> Qualitative:
    return Qualitative(
        cells=grid.shown(config), selector=config["removal"]["ratio"], code=_code("qualitative")
    )


@dataclass(frozen=True, kw_only=True)
class Evidence(Settings):
    """Settings of the stage ``evidence``; ``selector`` is the one whose scores estimate the
    log-density ratio, ``sad`` whether there is a table of what retraining measured."""

    cells: list[dict[str, Any]]
    runtime_cells: list[dict[str, Any]]
    selector: str
    sad: bool
    targets: list[dict[str, Any]]
    theory: dict[str, int]


def evidence(config: Config) -> Evidence:
    return Evidence(
        cells=list(grid.cells(config["grid"])),
        runtime_cells=grid.shown(config),
        selector=config["removal"]["ratio"],
        sad=config["evidence"]["measured"],
        targets=config["evidence"]["targets"],
        theory={"worlds": config["evidence"]["worlds"], "seed": 0},
        code=_code("evidence"),
    )


# Tables and figures ---------------------------------------------------------------------------


def tables(comparison: Mapping[str, Any]) -> Collected:
    """Settings of the stage ``tables`` for the grid or a study."""
    return Collected(grid=dict(comparison), code=_code("tables"))


def steps(config: Config, comparison: Mapping[str, Any]) -> Collected:
    """Settings of the stage ``steps``: the models whose steps follow from their data."""
    models = [name for name in comparison["models"] if grid.stepped(config, name)]
    axes = {"datasets": comparison["datasets"], "models": models, "seeds": comparison["seeds"]}
    return Collected(grid=axes, code=_code("steps"))


@dataclass(frozen=True, kw_only=True)
class Truth(Collected):
    """Settings of the stage ``truth``; ``by_chance`` as in ``Frontier``."""

    by_chance: dict[str, bool]


def truth(config: Config, comparison: Mapping[str, Any]) -> Truth:
    by_chance = _by_chance(config, comparison["selectors"])
    return Truth(grid=dict(comparison), by_chance=by_chance, code=_code("truth"))


def subgroups(comparison: Mapping[str, Any]) -> Collected:
    """Settings of the stage ``subgroups``."""
    return Collected(grid=dict(comparison), code=_code("subgroups"))


@dataclass(frozen=True, kw_only=True)
class Figure(Settings):
    """Settings of the stage ``figure``: what is drawn of which axes or cell, in what style."""

    name: str
    figures: dict[str, Any]
    grid: dict[str, Any]


def figures(of: str) -> list[str]:
    """The figures that declare to be of the grid, evidence, unlearning, the probe or one cell."""
    return [name for name, each in plugins("figure").items() if each.literals["OF"] == of]


def figure(config: Config, shown: Mapping[str, Any], name: str) -> Figure:
    return Figure(
        name=name,
        figures=config["figures"],
        grid=dict(shown),
        code=_code("figure", plugin("figure", name).module),
    )


def figure_of_cell(config: Config, name: str, dataset: str, model: str, seed: int) -> Figure:
    """Settings of the stage ``figure`` for a figure of one cell."""
    shown = _cell(dataset, model, seed)
    if "scores" in plugin("figure", name).literals["READS"]:
        shown["selector"] = config["removal"]["ratio"]
    return figure(config, shown, name)
