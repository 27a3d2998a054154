"""What models are asked beside their perplexity, and which models.

A question is a function of its name in ``stages._questions``, which takes an open model. A
model that is kept is asked by the rule of that name. One that is retrained or unlearned is let go,
and so is asked in the job that makes it: of a list in ``probe`` all questions ``of`` that section,
and so for ``left``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mamushi.config import grid
from mamushi.io import paths


class Question(NamedTuple):
    """A question to a model."""

    of: str
    """The section of the configuration that names the models."""
    answers: Mapping[str, str]
    """Its tables, by their names in the stages."""
    minutes: tuple[float, float, float]
    """For a tiny model, for others, and for every billion parameters of these."""
    retrained: bool = True
    """Whether retrained models are asked as well."""
    texts: bool = True
    """Whether it reads the dataset."""


QUESTIONS: Mapping[str, Question] = {
    "generate": Question(
        "probe", {"generations": paths.GENERATIONS}, (30, 20, 5), retrained=False, texts=False
    ),
    "relearn": Question("probe", {"relearning": paths.RELEARNING}, (30, 20, 5)),
    "membership": Question("left", {"membership": paths.MEMBERSHIP}, (30, 20, 5)),
}
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "_and_probe": ("probe",),
    "_and_left": ("left",),
    "_and_probe_and_left": ("probe", "left"),
}
"""Ending of a rule that makes models -> the sections by which it asks them."""


def asked(maker: str, sections: tuple[str, ...]) -> list[str]:
    """Return the questions that ``retrain`` or ``unlearn`` asks by these sections."""
    return [
        name
        for name, question in QUESTIONS.items()
        if question.of in sections and (maker == "unlearn" or question.retrained)
    ]


def answers(names: Iterable[str]) -> dict[str, str]:
    """Return the tables of these questions."""
    return {name: path for each in names for name, path in QUESTIONS[each].answers.items()}


def models(config: Mapping[str, Any], sections: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the wildcards of the models of which all these sections speak, each with its values;
    of none all."""
    axes = [grid.probed(config) if name == "probe" else config[name] for name in sections]
    found: dict[str, list[str]] = {}
    for key in (
        ("datasets", "models", "seeds", "selectors", "budgets", "unlearners") if axes else ()
    ):
        name, write = ("beta", paths.beta) if key == "budgets" else (key[:-1], str)
        first, *others = ([write(value) for value in each[key]] for each in axes)
        found[name] = [value for value in first if all(value in each for each in others)]
    return found
