"""The cells of a configuration's grid and studies, and the artifacts of each that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.config.kinds import Config
from mamushi.config.reading import refuse
from mamushi.config.selectors import of_texts, of_tokens
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.registry import plugin

UNSET = "no path is given (or its environment variable is not set); set it to"


def is_tiny(config: Config, model: str) -> bool:
    """Return whether the workflow builds this model itself."""
    return config["models"][model].get("family") is not None


def no_language_model(config: Config, model: str) -> str | None:
    """Return why nothing can be trained, generated or measured with this model, if so."""
    if "embeddings" not in config["models"][model]:
        return None
    return (
        f"models.{model}: has vectors alone and is no language model, which all that "
        "trains, generates or measures needs; ask for the targets removals and evidence"
    )


def no_labels(config: Config, dataset: str) -> str | None:
    """Return why nothing is measured against gold on this dataset, if nobody labelled it."""
    if not unlabelled(config["datasets"][dataset]):
        return None
    return (
        f"datasets.{dataset}: nobody marked the domain in it, so there is no gold standard, and no "
        "frontier, SAD or half-gap; its manifests say what a list holds"
    )


def unmeasurable(config: Config, dataset: str, model: str) -> str | None:
    """Return why retraining cannot be measured for this pair, or None when it can."""
    if reason := no_labels(config, dataset) or no_language_model(config, model):
        return reason
    if arms.base(config, model) is None:
        return (
            f"models.{model}: is declared contaminated without the model that it was trained from, "
            f"so nothing can be retrained; name that one in models.{model}.base"
        )
    return _no_evaluation(config, dataset)


def _no_evaluation(config: Config, dataset: str) -> str | None:
    definition = config["datasets"][dataset]
    # The loader may bring an evaluation section of its own.
    brings_section = plugin("dataset", definition["kind"]).evaluation_section
    if definition["sections"].get("evaluation") or brings_section or definition.get("section"):
        return None
    return (
        f"datasets.{dataset}.sections: has no evaluation section, so nothing can be measured; "
        "give evaluation a share above 0"
    )


def cells(axes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every dataset, model and seed, as the wildcards of a run's folder."""
    for dataset, model, seed in product(axes["datasets"], axes["models"], axes["seeds"]):
        yield {"dataset": dataset, "model": model, "seed": seed}


def of_arms(
    axes: Mapping[str, Any], names: Iterable[str], pattern: str = paths.PERPLEXITY
) -> list[str]:
    """Return the perplexity of these arms in every cell, or what ``pattern`` has of them."""
    names = list(names)
    return [pattern.format(**cell, arm=arm) for cell in cells(axes) for arm in names]


def retrained_arms(axes: Mapping[str, Any]) -> list[str]:
    """Return the arms that were trained without the axes' lists."""
    return [arms.retrained(*pair) for pair in product(axes["selectors"], axes["budgets"])]


def unlearned_arms(axes: Mapping[str, Any]) -> list[str]:
    """Return the arms that unlearned the axes' lists."""
    names = product(axes["unlearners"], axes["selectors"], axes["budgets"])
    return [arms.unlearned(*triple) for triple in names]


def removals(axes: Mapping[str, Any], pattern: str = paths.REMOVAL) -> list[str]:
    """Return the removal list of every cell, selector and budget, or what ``pattern`` has."""
    return [
        pattern.format(**cell, selector=selector, beta=paths.beta(budget))
        for cell in cells(axes)
        for selector, budget in product(axes["selectors"], axes["budgets"])
    ]


def budgets(config: Config) -> list[float]:
    """Return every budget that the grid or a study asks for, in ascending order."""
    sections = [config["grid"], *config["studies"].values()]
    return sorted({float(budget) for axes in sections for budget in axes["budgets"]})


def manifest_files(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """Return the manifests of every cell and selector, at all ``budgets`` of the configuration: one
    job writes them all."""
    every = {**axes, "budgets": budgets(config)}
    lists = removals(of_texts(config, every), paths.MANIFEST)
    return [*lists, *span_files(config, every, paths.SPANS_MANIFEST)]


def span_files(config: Config, axes: Mapping[str, Any], pattern: str = paths.SPANS) -> list[str]:
    """Return the spans that selectors of tokens hand to retraining, or what ``pattern`` has."""
    names = [name for name in axes["selectors"] if of_tokens(config, name)]
    return removals({**axes, "selectors": names}, pattern)


def ranking_pattern(config: Config, selector: str) -> str:
    """Return the pattern of a selector's ranking, of texts or of tokens, in a cell's folder."""
    pattern = paths.TOKEN_SCORES if of_tokens(config, selector) else paths.SCORES
    return pattern.replace("{selector}", selector)


def predicted(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose retraining can be predicted: those with a tokenizer."""
    return [run for run in cells(config["grid"]) if not no_language_model(config, run["model"])]


def sweeps(config: Config) -> list[dict[str, str]]:
    """Return the wildcards of every sweep of ``unlearning``."""
    axes = config["unlearning"]
    names = ("dataset", "model", "unlearner", "selector")
    lists = (axes[f"{name}s"] for name in names)
    return [dict(zip(names, pair, strict=True)) for pair in product(*lists)]


def swept(config: Config, pair: Mapping[str, str]) -> list[float]:
    """Return the budgets at which a pair is measured by this run: the configured ones and, where an
    earlier run measured these, the finer ones around the crossing that it chose."""
    path = Path(paths.SWEEP.format(**pair))
    configured = config["unlearning"]["budgets"]
    if not path.is_file():
        return sorted(configured)
    sweep = read_json(path)
    measured = sweep["provenance"]["settings"]
    keys = ("budgets", "seeds", "fine", "target")
    is_current = all(measured.get(key) == config["unlearning"][key] for key in keys)
    return sorted({*configured, *(sweep["added"] if is_current else ())})


def axes(config: Config, section: str) -> dict[str, Any]:
    """Return the axes of ``unlearning``, ``probe``, which has one budget, or ``left``."""
    names = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    values = {"budgets": [config[section].get("budget")], **config[section]}
    return {name: values[name] for name in names}


def starts(config: Config, section: str) -> dict[str, str]:
    """Return by model of a section the endpoint from which unlearning starts."""
    return {model: arms.starting_endpoint(config, model) for model in config[section]["models"]}


def require_lists(config: Config) -> None:
    """Raise ``UserError`` when there is no removal list of one's own, one without a path, or no
    model or dataset with which it could be unlearned and measured."""
    axes = config["unlearning"]
    if not axes["lists"]:
        do = "name a file with the ids to unlearn"
        raise UserError("no list is named", where="unlearning.lists", do=do)
    unset = [name for name, path in axes["lists"].items() if path is None]
    refuse(f"unlearning.lists.{name}: {UNSET} a file with the ids to unlearn" for name in unset)
    refuse(no_language_model(config, model) for model in axes["models"])
    refuse(no_labels(config, name) or _no_evaluation(config, name) for name in axes["datasets"])


def example_runs(config: Config) -> list[dict[str, Any]]:
    """Return one run per dataset and model, the first seed's: what figures of a single run show."""
    return list(cells({**config["grid"], "seeds": config["grid"]["seeds"][:1]}))
