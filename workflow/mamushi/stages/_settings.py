"""The settings of each stage: out of the whole configuration, just what the stage depends on.

A rule hands them to its command as one JSON object and keeps the same text as its parameter, so
that a change of configuration runs again exactly what it affects. ``code`` is the digest of the
definitions that the stage reaches. All functions take the configuration that ``complete`` gave.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from typing import Any, TypeVar

import msgspec

from mamushi.artifacts.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.configuration import arms, sections
from mamushi.configuration.kinds import Section
from mamushi.configuration.models import Method, Trained, Training
from mamushi.configuration.sections import (
    HeldOut,
    Prompts,
    Relearning,
    UnlearnTraining,
)
from mamushi.configuration.sources import contents
from mamushi.registry import plugin, plugins
from mamushi.running.identity import digest

Config = Mapping[str, Any]
T = TypeVar("T", bound=Section)

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
LEFT_MODEL_TABLES = ("klom", "relapse", "utility")
"""What the stage ``left_models`` writes, beside ``utility_tasks`` where tasks are configured."""

LEFT_TABLES = ("membership", "memorization", "left")
"""What the stage ``left`` writes."""
EVIDENCE_TABLES = (
    *("frontier", "calibration", "advice", "diagnostics"),
    *("confounds", "geometry", "runtime", "paper"),
)
"""What the stage ``evidence`` writes."""

MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""

# Parts that several stages have ---------------------------------------------------------------


class Settings(Section):
    """What a stage's results depend on beside its inputs; no ``code`` in a command by hand."""

    code: str = ""


class Cell(Settings):
    """A dataset, a model and a seed."""

    dataset: str
    model: str
    seed: int

    @property
    def cell(self) -> dict[str, Any]:
        """The wildcards of the cell's folder, and the first columns of its tables."""
        return {"dataset": self.dataset, "model": self.model, "seed": self.seed}


class Opened(Section):
    """How a model is opened: what its tensors hold, None without any, and its precision."""

    training: Trained | None
    precision: str


class Trains(Method):
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone."""

    trained_blocks: int


class OpenedArm(Opened):
    """How any model of a cell is opened: ``unlearned`` is what unlearning trained of it, where it
    was unlearned, and then the rest is of its start."""

    unlearned: Trains | None = None


class Relearn(Trains):
    """How a model is fine-tuned on a few texts, and what it is measured on."""

    seed: int
    max_length: int
    evaluation: HeldOut
    relearning: Relearning


class Membership(sections.Asked):
    """Which texts a model is asked about; Min-K takes the share ``least`` of the tokens."""

    max_length: int


class Extraction(sections.Extraction):
    """Which texts a model is to complete, from which shares of their tokens."""

    max_length: int


class Tasks(Section):
    """Tasks of lm-evaluation-harness; ``inputs`` are the files of tasks of one's own."""

    tasks: list[str]
    inputs: dict[str, str] = field(default_factory=dict)


class Questions(Section):
    """What a model is asked, by the names of the stages that ask it; those that train come last,
    and the one after which the model is another at the very end."""

    generate: Prompts | None = None
    membership: Membership | None = None
    extraction: Extraction | None = None
    tasks: Tasks | None = None
    relapse: Relearn | None = None
    relearn: Relearn | None = None


class SelectorSettings(Section):
    """A selector's kind and settings, under the name that the configuration gives it."""

    selector: str
    kind: str
    settings: dict[str, Any]


OMITTED_DEFAULTS: Mapping[str, Any] = {
    "method": "partial",
    **vars(Questions()),
    **dict.fromkeys(["planted", "unlearned", "questions"]),
}
"""Defaults that are left out of the canonical text of settings, by which results are compared: what
was made before a key was there is what is made by its default."""


def as_json(settings: Settings | Mapping[str, Any]) -> str:
    """The settings as the one canonical text that is compared and handed over."""
    return json.dumps(
        settings
        if isinstance(settings, Mapping)
        else asdict(settings, dict_factory=_without_defaults),
        sort_keys=True,
    )


def _without_defaults(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {
        k: value for k, value in pairs if k not in OMITTED_DEFAULTS or value != OMITTED_DEFAULTS[k]
    }
    if "method" not in found or found["method"] != "lora":
        found.pop("lora", None)
    return found


def _code(stage: str, *plugins: str) -> str:
    return digest(f"mamushi.stages.{stage}", *plugins)


def _cell(dataset: str, model: str, seed: int) -> dict[str, Any]:
    return {"dataset": dataset, "model": model, "seed": seed}


def part(kind: type[T], section: Mapping[str, Any]) -> T:
    """Return the part of a section that a class declares."""
    return msgspec.convert({each.name: section[each.name] for each in fields(kind)}, kind)


def of_training(kind: type[T], config: Config, model: str) -> T:
    """Return a part of a model's training."""
    return part(kind, config["models"][model]["training"])


def opened(config: Config, model: str, endpoint: str) -> Opened:
    untrained = arms.is_untrained(config, model, endpoint)
    # Trained from whatever base, an endpoint is trained as the model of its cell is.
    return Opened(
        training=None if untrained else of_training(Trained, config, model),
        precision=config["models"][model]["training"]["precision"],
    )


# Training, embedding, perplexity --------------------------------------------------------------


def held_out(config: Config) -> HeldOut:
    return part(HeldOut, config["evaluation"])


class FineTune(Cell):
    """Settings of the stage ``finetune`` for contaminated, gold or beta 0."""

    role: str
    section: str
    domains: list[str]
    training: Training


def endpoint(config: Config, dataset: str, model: str, seed: int, role: str) -> FineTune:
    section, domains = SECTIONS[role]
    training = of_training(Training, config, model)
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


class Retrain(FineTune):
    """Settings of the stage ``retrain``: beta 0 but for the removal list, and measured."""

    evaluation: HeldOut
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
        training=of_training(Training, config, model),
        evaluation=held_out(config),
        questions=_questions(config, model, seed, asked),
        code=_code("retrain", *_answering(asked)),
    )


def embedder(config: Config, model: str) -> Trained | None:
    ready = config["models"][model].get("contaminated", False)
    return None if ready else of_training(Trained, config, model)


# Selection ------------------------------------------------------------------------------------


def selector(config: Config, name: str) -> SelectorSettings:
    """A selector as the configuration defines it."""
    definition = config["selectors"][name]
    known = plugin("selector", definition["kind"])
    settings = {key: definition[key] for key in known.settings}
    # So that another setting of those networks is another ranking.
    key = known.literals.get("NETWORKS")
    if key and settings[key] is not None:
        settings[key] = selector(config, settings[key]).settings
    return SelectorSettings(selector=name, kind=definition["kind"], settings=settings)


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


class Remove(Settings):
    """Settings of the stages ``remove``, ``weigh`` and ``spans``, which depend on what they read
    and the budget alone."""

    beta: float


# Unlearning -----------------------------------------------------------------------------------


class Started(Trains):
    """The model that unlearning starts from, and what of it is trained then."""

    start: Opened
    max_length: int
    evaluation: HeldOut


def _trains(config: Config, model: str) -> Trains:
    blocks = config["unlearning"]["trained_blocks"]
    return Trains(**vars(of_training(Method, config, model)), trained_blocks=blocks)


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
        start=opened(config, model, arms.start(config, model)),
        max_length=config["unlearning"]["max_length"],
        evaluation=held_out(config),
        unlearner=name,
        kind=definition["kind"],
        settings={key: definition[key] for key in known.settings},
        training=part(UnlearnTraining, definition["training"]),
        questions=_questions(config, model, seed, asked),
        code=_code("unlearn", known.module, *_answering(asked)),
    )


def unlearn_list(
    config: Config, dataset: str, model: str, seed: int, name: str, removal: str
) -> Unlearn:
    """Settings of the stage ``unlearn`` for the removal list of one's own that is called so."""
    path = config["unlearning"]["lists"][removal]
    plain = unlearn(config, dataset, model, seed, name)
    return replace(plain, inputs=contents([path] if path else []))


def unlearning_axes(config: Config) -> dict[str, Any]:
    """The axes of ``unlearning``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    return {key: config["unlearning"][key] for key in keys}


def probe_axes(config: Config) -> dict[str, Any]:
    """The axes of ``probe``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budget")
    return {key: config["probe"][key] for key in keys}


class Collected(Settings):
    """Settings of a stage that collects what a grid measured."""

    grid: dict[str, Any]


def starts_of(config: Config, axes: Mapping[str, Any]) -> dict[str, str]:
    """By model, the endpoint from which unlearning starts."""
    return {model: arms.start(config, model) for model in axes["models"]}


# Questions to models --------------------------------------------------------------------------


class Ask(Settings):
    """Settings of the stage ``ask``: how the model is opened, and the question."""

    model: OpenedArm
    questions: Questions


def ask(config: Config, model: str, seed: int, arm: str, *, name: str) -> Ask:
    one = arms.Arm.parse(arm)
    how = opened(config, model, one.origin(config, model))
    questions = _questions(config, model, seed, [name])
    assert questions is not None
    return Ask(
        model=OpenedArm(**vars(how), unlearned=_trains(config, model) if one.unlearner else None),
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
    return part(Prompts, config["probe"])


def _relearn(config: Config, model: str, seed: int) -> Relearn:
    return Relearn(
        **vars(_trains(config, model)),
        seed=seed,
        max_length=config["unlearning"]["max_length"],
        evaluation=held_out(config),
        relearning=part(Relearning, config["probe"]["relearning"]),
    )


def _membership(config: Config) -> Membership:
    asked = vars(part(sections.Asked, config["left"]))
    return Membership(**asked, max_length=config["evaluation"]["max_length"])


def _extraction(config: Config) -> Extraction:
    return Extraction(**config["left"]["extraction"], max_length=config["evaluation"]["max_length"])


def _tasks(config: Config) -> Tasks:
    asked = config["utility"]["tasks"]
    return Tasks(tasks=asked, inputs=contents(asked))


def left_axes(config: Config) -> dict[str, Any]:
    """The axes of ``left``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    return {key: config["left"][key] for key in keys}


# Evidence -------------------------------------------------------------------------------------


def by_chance(config: Config, selectors: Iterable[str]) -> dict[str, bool]:
    """Of each selector whether it ranks by chance."""
    kinds = {name: config["selectors"][name]["kind"] for name in selectors}
    return {
        name: bool(plugin("selector", kind).literals.get("BY_CHANCE"))
        for name, kind in kinds.items()
    }


# Tables and figures ---------------------------------------------------------------------------


def figures(of: str) -> list[str]:
    """The figures that declare to be of the grid, evidence, unlearning, the probe or one cell."""
    return [name for name, each in plugins("figure").items() if each.literals["OF"] == of]
