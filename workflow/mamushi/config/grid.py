"""The cells of a configuration's grid and studies, and the artifacts of each that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.config.reading import ConfigError
from mamushi.config.selectors import of_texts, of_tokens
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.registry import plugin

Config = Mapping[str, Any]
AXES = ("datasets", "models", "seeds", "budgets", "selectors")


def comparison(config: Config, name: str | None = None) -> dict[str, Any]:
    """Return the axes of the grid, or of a study."""
    section = config["studies"][name] if name else config["grid"]
    return {axis: section[axis] for axis in AXES}


def is_tiny(config: Config, model: str) -> bool:
    """Return whether the workflow builds this model itself."""
    return config["models"][model].get("family") is not None


def no_language_model(config: Config, model: str) -> str | None:
    """Return why nothing can be trained, generated or measured with this model, if so."""
    if "embeddings" not in config["models"][model]:
        return None
    return (
        f"models.{model}: has embeddings made elsewhere and is no language model, which all that "
        "trains, generates or measures needs; ask for the targets removals and evidence"
    )


def require_language_models(config: Config, axes: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` with a line for each model of the axes that is no language model."""
    _refuse(no_language_model(config, model) for model in axes["models"])


def no_labels(config: Config, dataset: str) -> str | None:
    """Return why nothing is measured against gold on this dataset, if nobody labelled it."""
    if not unlabelled(config["datasets"][dataset]):
        return None
    return (
        f"datasets.{dataset}: nobody marked the domain in it, so there is no gold standard, and no "
        "frontier, SAD or half-gap; its manifests say what a list holds"
    )


def require_labels(config: Config, axes: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` with a line for each dataset of the axes that nobody labelled."""
    _refuse(no_labels(config, dataset) for dataset in axes["datasets"])


def _refuse(reasons: Iterable[str | None]) -> None:
    if lines := list(filter(None, reasons)):
        raise ConfigError(lines)


def unmeasurable(config: Config, dataset: str, model: str) -> str | None:
    """Return why retraining cannot be measured for this pair, or None when it can."""
    if reason := no_labels(config, dataset) or no_language_model(config, model):
        return reason
    if arms.base(config, model) is None:
        return (
            f"models.{model}: is declared contaminated without the model that it was trained from, "
            f"so nothing can be retrained; name that one in models.{model}.base"
        )
    return _unevaluated(config, dataset)


def _unevaluated(config: Config, dataset: str) -> str | None:
    """Return why nothing can be measured on this dataset, or None when it can."""
    definition = config["datasets"][dataset]
    if reason := no_labels(config, dataset):
        return reason
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


def manifests(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """Return the manifests of every cell and selector, at all ``budgets`` of the configuration: one
    job writes them all."""
    every = {**axes, "budgets": budgets(config)}
    lists = removals(of_texts(config, every), paths.MANIFEST)
    return [*lists, *spans(config, every, paths.SPANS_MANIFEST)]


def token_rankings(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """Return the selectors that rank tokens."""
    return [name for name in axes["selectors"] if of_tokens(config, name)]


def spans(config: Config, axes: Mapping[str, Any], pattern: str = paths.SPANS) -> list[str]:
    """Return the spans that selectors of tokens hand to retraining, or what ``pattern`` has."""
    return removals({**axes, "selectors": token_rankings(config, axes)}, pattern)


def scores(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """Return the ranking of every cell and selector, of texts or of tokens."""
    patterns = [ranking(config, selector) for selector in axes["selectors"]]
    return [pattern.format(**cell) for cell in cells(axes) for pattern in patterns]


def ranking(config: Config, selector: str) -> str:
    """Return the pattern of a selector's ranking, of texts or of tokens, in a cell's folder."""
    pattern = paths.TOKEN_SCORES if of_tokens(config, selector) else paths.SCORES
    return pattern.replace("{selector}", selector)


def predicted(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose retraining can be predicted: those with a tokenizer."""
    return [run for run in cells(config["grid"]) if not no_language_model(config, run["model"])]


def retrained(axes: Mapping[str, Any], pattern: str = paths.PERPLEXITY) -> list[str]:
    """Return the perplexity of every retrained model, or what ``pattern`` has of it."""
    return removals(axes, pattern.replace("{arm}", arms.RETRAINED))


def measurements(axes: Mapping[str, Any], pattern: str = paths.PERPLEXITY) -> list[str]:
    """Return the perplexity of every cell, at its ends and at each budget, or what ``pattern`` has
    of these models."""
    ends = [pattern.format(**cell, arm=end) for cell in cells(axes) for end in ("gold", "beta0")]
    return ends + retrained(axes, pattern)


def sweeps(config: Config) -> list[dict[str, str]]:
    """Return the wildcards of every sweep of ``unlearning``."""
    axes = config["unlearning"]
    names = ("dataset", "model", "unlearner", "selector")
    lists = (axes[f"{name}s"] for name in names)
    return [dict(zip(names, pair, strict=True)) for pair in product(*lists)]


def curve(config: Config, pair: Mapping[str, str], budgets: Iterable[float]) -> list[str]:
    """Return the perplexities of a sweep: every seed's at ``budgets``."""
    cell = {"dataset": pair["dataset"], "model": pair["model"]}
    return [
        paths.PERPLEXITY.format(
            **cell, seed=seed, arm=arms.unlearned(pair["unlearner"], pair["selector"], budget)
        )
        for seed in config["unlearning"]["seeds"]
        for budget in budgets
    ]


def swept(config: Config, pair: Mapping[str, str]) -> list[float]:
    """Return the budgets at which a pair is measured by this run: the configured ones and, where an
    earlier run measured these, the finer ones around the crossing that it chose."""
    path = Path(paths.SWEEP.format(**pair))
    configured = config["unlearning"]["budgets"]
    if not path.is_file():
        return sorted(configured)
    sweep = read_json(path)
    is_current = sweep["provenance"]["settings"]["budgets"] == configured
    return sorted({*configured, *(sweep["added"] if is_current else ())})


def axes(config: Config, section: str) -> dict[str, Any]:
    """Return the axes of ``unlearning``, ``probe`` or ``left``."""
    names = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets", "budget")
    return {name: config[section][name] for name in names if name in config[section]}


def starts(config: Config, section: str) -> dict[str, str]:
    """Return by model of a section the endpoint from which unlearning starts."""
    return {model: arms.start(config, model) for model in config[section]["models"]}


def ends(config: Config, dataset: str, model: str, unlearners: Iterable[str]) -> list[str]:
    """Return the perplexities at both ends of all curves: the start, the gold standard, and each
    unlearner on the whole forget set."""
    names = dict.fromkeys([arms.start(config, model), "gold", *map(arms.whole, unlearners)])
    return [
        paths.PERPLEXITY.format(dataset=dataset, model=model, seed=seed, arm=arm)
        for seed in config["unlearning"]["seeds"]
        for arm in names
    ]


def retrained_curves(config: Config, dataset: str, model: str) -> list[str]:
    """Return the perplexities of the curves of retraining, which start at beta 0."""
    axes = {**config["unlearning"], "datasets": [dataset], "models": [model]}
    return [paths.PERPLEXITY.format(**cell, arm="beta0") for cell in cells(axes)] + retrained(axes)


SAID = ("base", "contaminated", "gold")
"""The endpoints that say something beside models from which something was deleted."""


def probed(config: Config) -> dict[str, Any]:
    """Return the axes of the models that are probed."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners")
    probe = config["probe"]
    return {**{key: probe[key] for key in keys}, "budgets": [probe["budget"]]}


def deleted(axes: Mapping[str, Any], *, retraining: bool) -> list[str]:
    """Return the arms from which the axes' lists were deleted, by retraining or unlearners."""
    pairs = list(product(axes["selectors"], axes["budgets"]))
    first = [arms.retrained(*pair) for pair in pairs] if retraining else []
    return first + [
        arms.unlearned(unlearner, *pair) for unlearner in axes["unlearners"] for pair in pairs
    ]


def generations(config: Config, run: Mapping[str, Any]) -> list[str]:
    """Return what the models of a probed run said: its endpoints, then the unlearned ones."""
    cell = {"dataset": run["dataset"], "model": run["model"], "seed": int(run["seed"])}
    axes = probed(config)
    unlearned = deleted(axes, retraining=False) if cell in cells(axes) else []
    return [paths.GENERATIONS.format(**cell, arm=arm) for arm in (*SAID, *unlearned)]


def probes(config: Config) -> list[str]:
    """Return what the tables of the probe are made of."""
    axes = probed(config)
    files = []
    for cell in cells(axes):
        start = arms.start(config, cell["model"])
        files += [paths.JUDGED.format(**cell), paths.PERPLEXITY.format(**cell, arm=start)]
        models = ("gold", *deleted(axes, retraining=True))
        files += [paths.RELEARNING.format(**cell, arm=arm) for arm in models]
    return files


def left(config: Config) -> list[str]:
    """Return what each model makes of single texts, and the lists that were removed. The base model
    is the same for every seed, and asked once."""
    axes = config["left"]
    return [
        paths.MEMBERSHIP.format(**cell, arm=arm)
        for cell in cells(axes)
        for arm in ("base", "contaminated", "beta0", "gold", *deleted(axes, retraining=True))
        if arm != "base" or cell["seed"] == axes["seeds"][0]
    ] + removals(axes)


def listed(config: Config) -> list[str]:
    """Return what each unlearner makes of each list of one's own, and the perplexity before it."""
    axes = config["unlearning"]
    files = []
    for cell in cells(axes):
        start = arms.start(config, cell["model"])
        files.append(paths.PERPLEXITY.format(**cell, arm=start))
        files += [
            pattern.format(**cell, arm=arms.LISTED.format(unlearner=unlearner, list=name))
            for unlearner, name in product(axes["unlearners"], axes["lists"])
            for pattern in (paths.TRAINED, paths.PERPLEXITY, paths.CARD)
        ]
    return files


def require_lists(config: Config) -> None:
    """Raise ``UserError`` when there is no removal list of one's own, or one without a path."""
    lists = config["unlearning"]["lists"]
    missing = [name for name, path in lists.items() if path is None]
    if missing or not lists:
        raise UserError(
            "no path is given (or its variable is not set)" if missing else "no list is named",
            where=f"unlearning.lists.{missing[0]}" if missing else "unlearning.lists",
            do="name a file with the ids to unlearn",
        )
    require_language_models(config, config["unlearning"])
    for dataset in config["unlearning"]["datasets"]:
        reason = _unevaluated(config, dataset)
        if reason is not None:
            raise UserError(reason)


def shown(config: Config) -> list[dict[str, Any]]:
    """Return one run per dataset and model, the first seed's: what figures of a single run show."""
    return list(cells({**config["grid"], "seeds": config["grid"]["seeds"][:1]}))


def require_measurable(config: Config, axes: Mapping[str, Any]) -> None:
    """Raise ``UserError`` when a pair of the axes cannot be retrained and measured."""
    require_language_models(config, axes)
    for dataset, model in product(axes["datasets"], axes["models"]):
        reason = unmeasurable(config, dataset, model)
        if reason is not None:
            raise UserError(f"{reason}, or ask for the target removals")


def require_paths(config: Config, datasets: Iterable[str], models: Iterable[str]) -> None:
    """Raise ``ConfigError`` with a line for each of these datasets and models, about to be read,
    that has no path and cannot be downloaded.

    A dry run does without the paths; a real run must not get as far as its first job.
    """
    unset = "no path is given (or its environment variable is not set); set it to"
    lines = []
    for dataset in datasets:
        definition = config["datasets"][dataset]
        loader = plugin("dataset", definition["kind"])
        for key, names in loader.files.items():
            if definition[key] is None and not loader.downloads:
                raw = f"a folder with {', '.join(names)}" if names else "the raw file"
                lines.append(f"datasets.{dataset}.{key}: {unset} {raw}")
    for model in models:
        definition = config["models"][model]
        if "embeddings" in definition:
            if definition["embeddings"]["path"] is None:
                lines.append(f"models.{model}.embeddings.path: {unset} a file of vectors")
        elif definition["source"] is None:
            lines.append(f"models.{model}.source: {unset} a model's folder, or its id on the hub")
    if lines:
        raise ConfigError(lines)
