"""The cells of a configuration's grid and studies, and the files that its targets ask for."""

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.config.kinds import Config
from mamushi.config.selectors import ranks_tokens, text_axes
from mamushi.config.sources import is_unlabelled
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.registry import plugin

NO_GOLD = "nobody marked the domain in it, so there is no gold standard, frontier, SAD or half-gap"
MEASURED = ("gold", "beta0", arms.RETRAINED)
"""Arms of every cell that is retrained: its ends, and a model at each budget."""
OF_SWEEP = ("dataset", "model", "unlearner", "selector")
"""Wildcards of a sweep of ``unlearning``."""


def no_language_model(config: Config, model: str) -> str | None:
    """Return why nothing can be trained, generated or measured with this model, if so."""
    if "embeddings" not in config["models"][model]:
        return None
    return f"models.{model}: has vectors alone and trains nothing; ask for removals and evidence"


def unlabelled_datasets(config: Config, axes: Config) -> list[str]:
    """Return a line for each dataset of these axes that nobody labelled."""
    corpora = [name for name in axes["datasets"] if is_unlabelled(config["datasets"][name])]
    return [f"datasets.{name}: {NO_GOLD}" for name in corpora]


def hindrances(config: Config, axes: Config, is_retrained: bool = True) -> list[str]:
    """Return a line for each reason why datasets or models of a grid, its ``axes``, cannot be
    measured or, with ``is_retrained``, retrained."""
    lines = unlabelled_datasets(config, axes)
    for name in axes["datasets"]:
        dataset = config["datasets"][name]
        # The loader or the table may bring an evaluation section of its own.
        is_split = plugin("dataset", dataset["kind"]).evaluation_section or dataset.get("section")
        if not (is_split or dataset["sections"].get("evaluation") or is_unlabelled(dataset)):
            do = "give evaluation a share above 0"
            lines.append(f"datasets.{name}.sections: nothing can be measured; {do}")
    for name in axes["models"]:
        model = config["models"][name]
        if reason := no_language_model(config, name):
            lines.append(reason)
        elif is_retrained and model["contaminated"] and not model["base"]:
            do = "name the model that it was trained from as its base"
            lines.append(f"models.{name}: is contaminated, so nothing can be retrained; {do}")
    return lines


def axes(config: Config, section: str) -> dict[str, Any]:
    """Return the axes of ``unlearning``, ``probe``, which has one budget, or ``left``."""
    names = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    values = {"budgets": [config[section].get("budget")], **config[section]}
    return {name: values[name] for name in names}


def combinations(axes: Config, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return every combination of the values that axes have of wildcards of these names."""
    names = [*names]
    values = product(*(axes[f"{name}s"] for name in names))
    return [dict(zip(names, chosen, strict=True)) for chosen in values]


def cells(axes: Config) -> list[dict[str, Any]]:
    """Return every dataset, model and seed, as the wildcards of a run's folder."""
    return combinations(axes, ("dataset", "model", "seed"))


def expand(axes: Config, pattern: str, arms: Iterable[str] = ()) -> list[str]:
    """Return a pattern filled in with every combination of values that ``axes`` have for its
    wildcards. For ``{arm}`` these are the ``arms``, names of models or patterns of such names."""
    values = {**axes, "betas": [paths.beta(budget) for budget in axes.get("budgets", ())]}
    values["arms"] = [name for arm in arms for name in expand(axes, arm)]
    names = re.findall(r"\{(\w+)\}", pattern)
    return [*dict.fromkeys(pattern.format(**one) for one in combinations(values, names))]


def ranking_pattern(config: Config, selector: str) -> str:
    """Return the pattern of a selector's ranking, of texts or of tokens, in a cell's folder."""
    pattern = paths.TOKEN_SCORES if ranks_tokens(config, selector) else paths.SCORES
    return pattern.replace("{selector}", selector)


def budgets(config: Config) -> list[float]:
    """Return every budget that the grid or a study asks for, in ascending order."""
    sections = [config["grid"], *config["studies"].values()]
    return sorted({float(budget) for axes in sections for budget in axes["budgets"]})


def lists(config: Config, axes: Config) -> list[str]:
    """Return the product: the lists of every cell, selector and budget, of texts to remove or of
    tokens to mask, and their manifests, at all ``budgets`` of the configuration: one job writes
    them all."""
    texts, tokens = text_axes(config, axes), text_axes(config, axes, tokens=True)
    every = {"budgets": budgets(config)}
    return [
        *(expand(texts, paths.REMOVAL) + expand(texts | every, paths.MANIFEST)),
        *(expand(tokens, paths.SPANS) + expand(tokens | every, paths.SPANS_MANIFEST)),
    ]


def starting_endpoints(config: Config, section: str) -> dict[str, str]:
    """Return the endpoint, such as ``beta0``, where unlearning starts, by model of a section."""
    return {model: arms.starting_endpoint(config, model) for model in config[section]["models"]}


def sweeps(config: Config) -> list[dict[str, Any]]:
    """Return every sweep of ``unlearning``: its wildcards, and the ``budgets`` at which this run
    measures it. These are the configured ones and, where an earlier run measured them, the finer
    ones around the crossing that it chose."""
    unlearning, added = config["unlearning"], dict[str, list[float]]()
    swept, keys = combinations(unlearning, OF_SWEEP), ("budgets", "seeds", "fine", "target")
    if Path(paths.SWEEPS).is_file():
        earlier = read_json(Path(paths.SWEEPS))
        if all(earlier[key] == unlearning[key] for key in keys):
            added = earlier["added"]
    for sweep in swept:
        finer = added.get("/".join(sweep.values()), [])
        sweep["budgets"] = sorted({*unlearning["budgets"], *finer})
    return swept
