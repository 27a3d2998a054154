"""The settings of the stages: out of the whole configuration, just what each one depends on.

A rule hands them to its command as one JSON object and keeps the same text as its parameter, so
that a change of configuration runs again exactly what it affects. Each field says where it
comes from; ``code`` is the digest of the definitions that the stage reaches. All functions take
the configuration that ``complete`` gave.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field, fields
from typing import Any, Literal, TypeVar

import msgspec

from mamushi.config import arms, sections
from mamushi.config.checks import of_texts
from mamushi.config.kinds import Section
from mamushi.config.models import Lora, Method, Trained
from mamushi.config.sections import HeldOut, Prompts, Relearning
from mamushi.registry import plugin, plugins
from mamushi.running.identity import digest
from mamushi.running.stage import Loaded, entry

Config = Mapping[str, Any]
T = TypeVar("T", bound=Section)

# What the stages of result tables write, each table as Parquet and CSV.
TABLES = ("sad", "sad_summary", "sad_differences", "selection")
UNLEARNING_TABLES = ("unlearning", "half_gap")
PROBE_TABLES = ("generations", "relapse")
LEFT_TABLES = ("membership",)
EVIDENCE_TABLES = (
    *("frontier", "calibration", "advice", "diagnostics"),
    *("confounds", "geometry", "predicted", "runtime", "paper"),
)

# How settings are made ------------------------------------------------------------------------


def setting(source: str | Callable[..., Any], **more: Any) -> Any:
    """Declare where a setting comes from: keys of the configuration with dots between them, in
    which ``{model}`` is that of a job; or a function of the configuration, the wildcards and the
    settings before it, by their names."""
    return field(metadata={"made": source}, **more)


def fill(kind: type[T], config: Config, **given: Any) -> T:
    """Return settings from the configuration and what is ``given``; ``code`` is made last."""
    known, found = {"config": config, **given}, {}
    for each in sorted(fields(kind), key=lambda each: each.name == "code"):
        source = each.metadata.get("made")
        if isinstance(source, str):
            value: Any = config
            for key in source.split("."):
                value = value[key.format(**known)]
        elif source is not None:
            names = [name for name in inspect.signature(source).parameters if name in known]
            value = source(**{name: known[name] for name in names})
        elif each.name in given:
            value = given[each.name]
        else:
            continue
        known[each.name] = found[each.name] = value
    return msgspec.convert(found, kind)


def of(stage: str, config: Config, **given: Any) -> Settings:
    """Return the settings of a stage for a job with these wildcards."""
    kind: type[Settings] = Loaded(stage).settings
    return fill(kind, config, stage=entry(stage), **given)


# Parts that several stages have ---------------------------------------------------------------


def answering(asked: Iterable[str] = ()) -> list[str]:
    """Return the code of answers, which a stage finds by name, so that a change of it runs again
    just the jobs that ask."""
    return [f"mamushi.stages._questions.{name}" for name in asked]


def code_of(stage: str, asked: Iterable[str] = ()) -> str:
    """Return the digest of a stage's code, and of what it asks."""
    return digest(stage, *answering(asked))


def code_with(plug_in: str) -> Callable[..., str]:
    """As ``code_of``, with the code of the plug-in of this sort that the setting ``kind`` names."""

    def code(stage: str, kind: str, asked: Iterable[str] = ()) -> str:
        return digest(stage, plugin(plug_in, kind).module, *answering(asked))

    return code


class Settings(Section):
    """What a stage's results depend on beside its inputs; no ``code`` in a command by hand."""

    code: str = setting(code_of, default="")


class Cell(Settings):
    """A dataset, a model and a seed."""

    dataset: str
    model: str
    seed: int

    @property
    def cell(self) -> dict[str, Any]:
        """Return the wildcards of the cell's folder, and the first columns of its tables."""
        return {"dataset": self.dataset, "model": self.model, "seed": self.seed}


def training_of(config: Config, model: str, arm: str) -> Any:
    """Return what was trained of an arm or, where it was unlearned, of its start; None for a
    model's own weights. Trained from whatever base, an endpoint is trained as the model of its cell
    is."""
    endpoint = arms.Arm.parse(arm).origin(config, model)
    if arms.is_untrained(config, model, endpoint):
        return None
    return config["models"][model]["training"]


class Opened(Section):
    """How a model is opened: what its tensors hold, None without any, and its precision."""

    training: Trained | None = setting(training_of)
    precision: str = setting("models.{model}.training.precision")


class Trains(Method):
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone."""

    method: Literal["partial", "lora", "full"] = setting(
        "models.{model}.training.method", default="partial"
    )
    lora: Lora = setting("models.{model}.training.lora", default=Lora())
    trained_blocks: int = setting("unlearning.trained_blocks")


class Relearn(Trains):
    """How a model is fine-tuned on a few texts, and what it is measured on."""

    seed: int
    max_length: int = setting("unlearning.max_length")
    evaluation: HeldOut = setting("evaluation")
    relearning: Relearning = setting("probe.relearning")


class Membership(sections.Asked):
    """Which texts a model is asked about."""

    max_length: int


class Questions(Section):
    """What a model is asked, by name; the one after which the model is another comes last."""

    generate: Prompts | None = setting("probe", default=None)
    membership: Membership | None = setting(
        lambda config: config["left"] | {"max_length": config["evaluation"]["max_length"]},
        default=None,
    )
    relearn: Relearn | None = setting(
        lambda config, model, seed: fill(Relearn, config, model=model, seed=seed), default=None
    )


def asking(config: Config, model: str, seed: int, asked: Iterable[str] = ()) -> Any:
    """Return the settings of the questions that are ``asked``; None without any."""
    every = vars(fill(Questions, config, model=model, seed=seed)) if asked else {}
    return {name: every[name] for name in asked} or None


def selector_settings(config: Config, selector: str) -> dict[str, Any]:
    """Return a selector's settings as the configuration has them, with those of networks that it
    names: another setting of those is another ranking."""
    definition = config["selectors"][selector]
    known = plugin("selector", definition["kind"])
    found = {key: definition[key] for key in known.settings}
    key = known.literals.get("NETWORKS")
    if key and found[key] is not None:
        found[key] = selector_settings(config, found[key])
    return found


class SelectorSettings(Section):
    """A selector's kind and settings, under the name that the configuration gives it."""

    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)


OMITTED_DEFAULTS: Mapping[str, Any] = {
    "method": "partial",
    "drop_duplicates": True,
    **dict.fromkeys([each.name for each in fields(Questions)]),
    **dict.fromkeys(["planted", "unlearned", "questions", "max_length"]),
}
"""Defaults that are left out of the canonical text of settings, by which results are compared: what
was made before a key was there is what is made by its default."""


def as_json(settings: Section | Mapping[str, Any]) -> str:
    """Return the settings as the one canonical text that is compared and handed over."""
    if isinstance(settings, Section):
        settings = asdict(settings, dict_factory=_without_defaults)
    return json.dumps(settings, sort_keys=True)


def _without_defaults(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {
        k: value for k, value in pairs if k not in OMITTED_DEFAULTS or value != OMITTED_DEFAULTS[k]
    }
    if "method" not in found or found["method"] != "lora":
        found.pop("lora", None)
    return found


def derives(config: Config, name: str) -> str | None:
    """Return the selector whose scores this one is derived from, if any."""
    definition = config["selectors"][name]
    key = plugin("selector", definition["kind"]).literals.get("DERIVES")
    return str(definition[key]) if key else None


def reads_layers(config: Config, name: str) -> bool:
    """Tell whether a selector reads the texts at other depths than that of the embedding."""
    definition = config["selectors"][name]
    key = plugin("selector", definition["kind"]).literals.get("DEPTHS")
    return key is not None and any(depth != 1 for depth in definition[key])


def by_chance(config: Config) -> dict[str, bool]:
    """Of each selector of the grid whether it ranks texts by chance."""
    kinds = {name: config["selectors"][name]["kind"] for name in config["grid"]["selectors"]}
    return {
        name: bool(plugin("selector", kind).literals.get("BY_CHANCE"))
        for name, kind in kinds.items()
    }


def reads_words(config: Config) -> list[str]:
    """Return the grid's selectors that read the tokens of the texts, or rank these."""
    names = config["grid"]["selectors"]
    kinds = {name: plugin("selector", config["selectors"][name]["kind"]) for name in names}
    return [name for name in names if {"READS_TOKENS", "UNIT"} & kinds[name].literals.keys()]


def comparison(config: Config, selector: str) -> str | None:
    """Return why lists of a selector are there for comparison alone; None of any other."""
    definition = config["selectors"][selector]
    words = plugin("selector", definition["kind"]).literals.get("COMPARISON")
    return None if words is None else str(words).format(**definition)


def leading_first(config: Config) -> list[str]:
    """Return the grid's selectors of texts, first the one whose lists are to be acted on: that of
    the ratio, else the first that is not there for comparison alone."""
    asked = config["removal"]["ratio"]
    names = of_texts(config, config["grid"])["selectors"] or [asked]
    real = [name for name in names if comparison(config, name) is None]
    leading = asked if asked in names else next(iter(real or names))
    return [leading, *(name for name in names if name != leading)]


# Result tables and figures --------------------------------------------------------------------

AXES = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets", "budget")


def axes(config: Config, section: str) -> dict[str, Any]:
    """Return the axes of ``unlearning``, ``probe`` or ``left``."""
    return {key: config[section][key] for key in AXES if key in config[section]}


def starts_of(config: Config, section: str) -> dict[str, str]:
    """By model of a section, the endpoint from which unlearning starts."""
    return {model: arms.start(config, model) for model in config[section]["models"]}


def figures(kind: str) -> list[str]:
    """Return the figures that declare to be of the grid, evidence, unlearning or one cell."""
    return [name for name, each in plugins("figure").items() if each.literals["OF"] == kind]
