"""The cells of a configuration's grid and studies, and the files that its targets ask for."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.config.kinds import NO_PATH, Config, refuse
from mamushi.config.selectors import of_texts, of_tokens
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.registry import plugin

STUDY_TABLES = ("sad", "sad_summary", "sad_differences", "selection")
TABLES = (*STUDY_TABLES, "effects", "subgroups")
UNLEARNING_TABLES = ("unlearning", "half_gap", "generations", "relapse")
EVIDENCE_TABLES = (
    *("frontier", "calibration", "advice", "diagnostics", "geometry"),
    *("agreement", "predicted", "runtime", "runtime_summary", "paper", "qualitative_ranking"),
)
NO_GOLD = "nobody marked the domain in it, so there is no gold standard, frontier, SAD or half-gap"
OF_SWEEP = ("dataset", "model", "unlearner", "selector")
"""Wildcards of a sweep of ``unlearning``."""


def no_language_model(config: Config, model: str) -> str | None:
    """Return why nothing can be trained, generated or measured with this model, if so."""
    if "embeddings" not in config["models"][model]:
        return None
    return f"models.{model}: has vectors alone and trains nothing; ask for removals and evidence"


def no_gold(config: Config, axes: Config) -> list[str]:
    """Return a line for each dataset of these axes that nobody labelled."""
    corpora = [name for name in axes["datasets"] if unlabelled(config["datasets"][name])]
    return [f"datasets.{name}: {NO_GOLD}" for name in corpora]


def unmeasured(config: Config, axes: Config) -> list[str]:
    """Return why nothing can be measured of these axes, a line for each dataset and model."""
    lines = no_gold(config, axes)
    for name in axes["datasets"]:
        dataset = config["datasets"][name]
        # The loader or the table may bring an evaluation section of its own.
        is_split = plugin("dataset", dataset["kind"]).evaluation_section or dataset.get("section")
        if not (is_split or dataset["sections"].get("evaluation") or unlabelled(dataset)):
            do = "give evaluation a share above 0"
            lines.append(f"datasets.{name}.sections: nothing can be measured; {do}")
    return [*lines, *filter(None, (no_language_model(config, name) for name in axes["models"]))]


def hindrances(config: Config, axes: Config) -> list[str]:
    """Return why these axes cannot be retrained and measured, a line for each reason."""
    do = "name the model that it was trained from as its base"
    return unmeasured(config, axes) + [
        f"models.{name}: is contaminated, so nothing can be retrained; {do}"
        for name in axes["models"]
        if arms.base(config, name) is None and not no_language_model(config, name)
    ]


def axes(config: Config, section: str) -> dict[str, Any]:
    """Return the axes of ``unlearning``, ``probe``, which has one budget, or ``left``."""
    names = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    values = {"budgets": [config[section].get("budget")], **config[section]}
    return {name: values[name] for name in names}


def cells(axes: Config) -> Iterator[dict[str, Any]]:
    """Yield every dataset, model and seed, as the wildcards of a run's folder."""
    for dataset, model, seed in product(axes["datasets"], axes["models"], axes["seeds"]):
        yield {"dataset": dataset, "model": model, "seed": seed}


def example_runs(config: Config) -> list[dict[str, Any]]:
    """Return one run per dataset and model, the first seed's: what figures of a single run show."""
    return list(cells({**config["grid"], "seeds": config["grid"]["seeds"][:1]}))


def example_files(axes: Config) -> list[str]:
    """Return the texts of these axes."""
    return [paths.EXAMPLES.format(dataset=name) for name in axes["datasets"]]


def of_arms(axes: Config, names: Iterable[str], pattern: str = paths.PERPLEXITY) -> list[str]:
    """Return the perplexity of these arms in every cell, or what ``pattern`` has of them."""
    names = list(dict.fromkeys(names))
    return [pattern.format(**cell, arm=arm) for cell in cells(axes) for arm in names]


def retrained_arms(axes: Config) -> list[str]:
    """Return the arms that were trained without the axes' lists."""
    return [arms.retrained(*pair) for pair in product(axes["selectors"], axes["budgets"])]


def unlearned_arms(axes: Config) -> list[str]:
    """Return the arms that unlearned the axes' lists."""
    names = product(axes["unlearners"], axes["selectors"], axes["budgets"])
    return [arms.unlearned(*triple) for triple in names]


def of_models(axes: Config, pattern: str) -> list[str]:
    """Return what ``pattern`` has of every model of the axes: endpoints, retrained, unlearned. The
    base model is the same for every seed, and has that of the first."""
    base = of_arms({**axes, "seeds": axes["seeds"][:1]}, ["base"], pattern)
    names = ["contaminated", "beta0", "gold", *retrained_arms(axes), *unlearned_arms(axes)]
    return base + of_arms(axes, names, pattern)


def measurements(axes: Config, pattern: str = paths.PERPLEXITY) -> list[str]:
    """Return the perplexity of every cell, at its ends and at each budget, or what else they
    have."""
    return of_arms(axes, ["gold", "beta0", *retrained_arms(axes)], pattern)


def ranking_pattern(config: Config, selector: str) -> str:
    """Return the pattern of a selector's ranking, of texts or of tokens, in a cell's folder."""
    pattern = paths.TOKEN_SCORES if of_tokens(config, selector) else paths.SCORES
    return pattern.replace("{selector}", selector)


def budgets(config: Config) -> list[float]:
    """Return every budget that the grid or a study asks for, in ascending order."""
    sections = [config["grid"], *config["studies"].values()]
    return sorted({float(budget) for axes in sections for budget in axes["budgets"]})


def removals(axes: Config, pattern: str = paths.REMOVAL) -> list[str]:
    """Return the removal list of every cell, selector and budget, or what ``pattern`` has."""
    return [
        pattern.format(**cell, selector=selector, beta=paths.beta(budget))
        for cell in cells(axes)
        for selector, budget in product(axes["selectors"], axes["budgets"])
    ]


def lists(config: Config, axes: Config) -> list[str]:
    """Return the product: the lists of every cell, selector and budget, of texts to remove or of
    tokens to mask, and their manifests, at all ``budgets`` of the configuration: one job writes
    them all."""
    tokens = [name for name in axes["selectors"] if of_tokens(config, name)]
    of_both = (
        (of_texts(config, axes), paths.REMOVAL, paths.MANIFEST),
        ({**axes, "selectors": tokens}, paths.SPANS, paths.SPANS_MANIFEST),
    )
    return [
        path
        for ranked, listed, manifest in of_both
        for path in removals(ranked, listed)
        + removals({**ranked, "budgets": budgets(config)}, manifest)
    ]


def predicted(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose retraining can be predicted: those with a tokenizer."""
    return [run for run in cells(config["grid"]) if not no_language_model(config, run["model"])]


def starts(config: Config, section: str) -> dict[str, str]:
    """Return by model of a section the endpoint from which unlearning starts."""
    return {model: arms.starting_endpoint(config, model) for model in config[section]["models"]}


def sweeps(config: Config) -> list[dict[str, Any]]:
    """Return every sweep of ``unlearning``: its wildcards, and the ``budgets`` at which this run
    measures it. These are the configured ones and, where an earlier run measured them, the finer
    ones around the crossing that it chose."""
    unlearning = config["unlearning"]
    names = (unlearning[f"{name}s"] for name in OF_SWEEP)
    pairs = [dict(zip(OF_SWEEP, pair, strict=True)) for pair in product(*names)]
    return [{**pair, "budgets": _swept(unlearning, pair)} for pair in pairs]


def _swept(unlearning: Config, pair: Config) -> list[float]:
    path = Path(paths.SWEEP.format(**pair))
    sweep = read_json(path) if path.is_file() else {"provenance": {"settings": {}}}
    measured = sweep["provenance"]["settings"]
    keys = ("budgets", "seeds", "fine", "target")
    is_current = all(measured.get(key) == unlearning[key] for key in keys)
    return sorted({*unlearning["budgets"], *(sweep["added"] if is_current else ())})


def unlearned_lists(config: Config) -> list[str]:
    """Return what each unlearner makes of each list of the user's, and the perplexity before it.

    Raises ``UserError`` when there is no such list, one without a path, or no model or dataset with
    which it could be unlearned and measured."""
    unlearning = config["unlearning"]
    if not (lists := unlearning["lists"]):
        do = "name a file with the ids to unlearn"
        raise UserError("no list is named", where="unlearning.lists", do=do)
    unset = [name for name, path in lists.items() if path is None]
    refuse(f"unlearning.lists.{name}: {NO_PATH}" for name in unset)
    refuse(unmeasured(config, unlearning))
    names = product(unlearning["unlearners"], lists)
    listed = [arms.LISTED.format(unlearner=unlearner, list=name) for unlearner, name in names]
    starts = [
        paths.PERPLEXITY.format(**cell, arm=arms.starting_endpoint(config, cell["model"]))
        for cell in cells(unlearning)
    ]
    patterns = (paths.TRAINED, paths.PERPLEXITY, paths.CARD)
    return starts + [path for pattern in patterns for path in of_arms(unlearning, listed, pattern)]
