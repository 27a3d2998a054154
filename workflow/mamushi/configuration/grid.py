"""What a configuration asks for: the cells of its grid and studies, and the artifacts of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from mamushi.artifacts import paths
from mamushi.configuration.complete import ConfigError
from mamushi.errors import UserError
from mamushi.registry import plugin

Config = Mapping[str, Any]
STEPPED = ("gold", "gold_matched", "beta0")
"""The endpoints that tell what of SAD is the number of steps."""
AXES = ("datasets", "models", "seeds", "budgets", "selectors")


def comparison(config: Config, name: str | None = None) -> dict[str, Any]:
    """The axes of the grid, or of a study: what a study does not say it takes from the grid."""
    study = config["studies"][name] if name else {}
    return {
        axis: study[axis] if study.get(axis) is not None else config["grid"][axis] for axis in AXES
    }


def is_tiny(config: Config, model: str) -> bool:
    """Whether the workflow builds this model itself."""
    return config["models"][model].get("family") is not None


def no_language_model(config: Config, model: str) -> str | None:
    """Why nothing can be trained, generated or measured with this model, or None when it can."""
    definition = config["models"][model]
    if "embeddings" not in definition and definition.get("kind") is None:
        return None
    what = "is a sentence encoder" if "kind" in definition else "has embeddings made elsewhere"
    return (
        f"models.{model}: {what} and no language model, which all that trains, generates or "
        "measures needs; ask for the targets removals and evidence"
    )


def require_language_models(config: Config, axes: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` with a line for each model of the axes that is no language model."""
    found = [no_language_model(config, model) for model in axes["models"]]
    lines = [line for line in found if line is not None]
    if lines:
        raise ConfigError(lines)


def base(config: Config, model: str) -> str | None:
    """The model that retraining starts from: the model itself, or the ``base`` that a model which
    is already contaminated names; None where it names none."""
    definition = config["models"][model]
    if definition.get("contaminated"):
        name = definition.get("base")
        return None if name is None else str(name)
    return model


def unmeasurable(config: Config, dataset: str, model: str) -> str | None:
    """Why retraining cannot be measured for this pair, or None when it can."""
    if reason := no_language_model(config, model):
        return reason
    if base(config, model) is None:
        return (
            f"models.{model}: is declared contaminated without the model that it was trained from, "
            f"so nothing can be retrained; name that one in models.{model}.base"
        )
    return _unevaluated(config, dataset)


def _unevaluated(config: Config, dataset: str) -> str | None:
    """Why nothing can be measured on this dataset, or None when it can."""
    definition = config["datasets"][dataset]
    if definition["sections"].get("evaluation", 0) == 0 and not _ready_made(definition):
        return (
            f"datasets.{dataset}.sections: has no evaluation section, so nothing can be measured; "
            "give evaluation a share above 0"
        )
    return None


def _ready_made(definition: Mapping[str, Any]) -> bool:
    """Whether the loader may bring an evaluation section of its own."""
    loader = plugin("dataset", definition["kind"])
    return bool(loader.literals.get("EVALUATION_SECTION") or definition.get("section"))


def cells(axes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every dataset, model and seed, as the wildcards of a run's folder."""
    for dataset, model, seed in product(axes["datasets"], axes["models"], axes["seeds"]):
        yield {"dataset": dataset, "model": model, "seed": seed}


def removals(axes: Mapping[str, Any], pattern: str = paths.REMOVAL) -> list[str]:
    """The removal list of every cell, selector and budget, or what ``pattern`` has for it."""
    return [
        pattern.format(**cell, selector=selector, beta=paths.beta(budget))
        for cell in cells(axes)
        for selector, budget in product(axes["selectors"], axes["budgets"])
    ]


def budgets(config: Config) -> list[float]:
    """Every budget that the grid or a study asks for, in ascending order."""
    asked = [config["grid"], *config["studies"].values()]
    return sorted({float(budget) for axes in asked for budget in axes["budgets"]})


def manifests(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """The manifests of every cell and selector, at all ``budgets`` of the configuration.

    One job writes them all, and so all are asked for: see ``manifests`` in rules/select.smk.
    """
    return removals({**axes, "budgets": budgets(config)}, paths.MANIFEST)


def action(config: Config, selector: str) -> str:
    """What retraining does with the selector's budgets: remove, downweight or mask."""
    return str(config["selectors"][selector]["action"])


EDITS = {"downweight": paths.WEIGHTS, "mask": paths.SPANS}
"""Action -> what it hands to retraining in the place of a removal list."""


def edits(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """What selectors with another action than removal hand to retraining."""
    found = []
    for name, pattern in EDITS.items():
        own = [each for each in axes["selectors"] if action(config, each) == name]
        found += removals({**axes, "selectors": own}, pattern)
    return found


def scores(axes: Mapping[str, Any]) -> list[str]:
    """The ranking of every cell and selector."""
    return [
        paths.SCORES.format(**cell, selector=selector)
        for cell in cells(axes)
        for selector in axes["selectors"]
    ]


def measurements(axes: Mapping[str, Any]) -> list[str]:
    """What the tables are made of: every cell's perplexity, at its ends and at each budget."""
    found = []
    for cell in cells(axes):
        found += [
            paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint=endpoint)
            for endpoint in ("gold", "beta0")
        ]
        found += [
            paths.PERPLEXITY.format(**cell, selector=selector, beta=paths.beta(budget))
            for selector, budget in product(axes["selectors"], axes["budgets"])
        ]
    return found


def stepped(config: Config, model: str) -> bool:
    """Whether how long this model is trained depends on what is removed, and that is measured."""
    by_data = config["models"][model]["training"]["steps"] == "by_data"
    return bool(config["evaluation"]["matched_gold"]) and by_data


def matched(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """The perplexities that tell what of SAD is the number of steps; see ``evaluation.steps``."""
    return [
        paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint=endpoint)
        for cell in cells(axes)
        if stepped(config, cell["model"])
        for endpoint in STEPPED
    ]


def knows_truth(config: Config, axes: Mapping[str, Any]) -> bool:
    """Whether a selector ranks by the exact ratio, which only datasets that know it can have."""
    kinds = {config["selectors"][name]["kind"] for name in axes["selectors"]}
    return any(plugin("selector", kind).literals.get("NEEDS_TRUTH") for kind in kinds)


def nlls(axes: Mapping[str, Any]) -> list[str]:
    """Every text's NLL under all models whose perplexities are ``measurements``."""
    ends = [
        paths.NLL_ENDPOINT.format(**cell, endpoint=endpoint)
        for cell in cells(axes)
        for endpoint in ("gold", "beta0")
    ]
    return ends + removals(axes, paths.NLL)


def start(config: Config, model: str) -> str:
    """The endpoint from which unlearning starts. A model that is declared contaminated starts as it
    is: it has seen the data, and is the one to be mended."""
    ready = config["models"][model].get("contaminated")
    return "contaminated" if ready else str(config["unlearning"]["start"])


def as_it_is(config: Config, model: str, endpoint: str) -> bool:
    """Whether an endpoint is a model's own weights: the base, and what was contaminated before."""
    ready = bool(config["models"][model].get("contaminated"))
    return endpoint == "base" or (ready and endpoint == "contaminated")


def of_endpoint(config: Config, model: str, endpoint: str) -> str:
    """The model whose card and tokens an endpoint has: where one that is already contaminated
    names a ``base``, all but ``contaminated`` are of that one."""
    ready = endpoint == "contaminated" or base(config, model) is None
    return model if ready else str(base(config, model))


def swept(config: Config) -> list[dict[str, str]]:
    """Every dataset, model, unlearner and selector of ``unlearning``: the wildcards of a sweep."""
    axes = config["unlearning"]
    names = ("dataset", "model", "unlearner", "selector")
    lists = (axes[f"{name}s"] for name in names)
    return [dict(zip(names, pair, strict=True)) for pair in product(*lists)]


def curve(config: Config, pair: Mapping[str, str], budgets: Iterable[float]) -> list[str]:
    """The perplexities of a sweep: every seed's at ``budgets``."""
    return [
        paths.PERPLEXITY_UNLEARNED.format(**pair, seed=seed, beta=paths.beta(budget))
        for seed in config["unlearning"]["seeds"]
        for budget in budgets
    ]


def ends(config: Config, dataset: str, model: str, unlearners: Iterable[str]) -> list[str]:
    """The perplexities at both ends of all curves: the start, the gold standard that they aim at,
    and each unlearner on the whole forget set."""
    cells = [
        {"dataset": dataset, "model": model, "seed": seed} for seed in config["unlearning"]["seeds"]
    ]
    endpoints = dict.fromkeys([start(config, model), "gold"])
    return [
        *(paths.PERPLEXITY_ENDPOINT.format(**c, endpoint=e) for c in cells for e in endpoints),
        *(paths.PERPLEXITY_WHOLE.format(**c, unlearner=u) for c in cells for u in unlearners),
    ]


def retrained(config: Config, dataset: str, model: str) -> list[str]:
    """The perplexities of the curves of retraining, which start at beta 0."""
    axes = config["unlearning"]
    found = []
    for seed in axes["seeds"]:
        cell = {"dataset": dataset, "model": model, "seed": seed}
        found.append(paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint="beta0"))
        found += [
            paths.PERPLEXITY.format(**cell, selector=selector, beta=paths.beta(budget))
            for selector, budget in product(axes["selectors"], axes["budgets"])
        ]
    return found


def probed(config: Config) -> list[dict[str, Any]]:
    """The unlearned models that are asked what they say and how fast they relearn: the wildcards
    of their runs."""
    probe = config["probe"]
    return [
        {**cell, "unlearner": unlearner, "selector": selector, "beta": paths.beta(probe["budget"])}
        for cell in cells(probe)
        for unlearner, selector in product(probe["unlearners"], probe["selectors"])
    ]


def continuations(config: Config, run: Mapping[str, Any]) -> list[str]:
    """What the models of a probed run said: its endpoints, then the unlearned ones."""
    cell = {"dataset": run["dataset"], "model": run["model"], "seed": int(run["seed"])}
    return [
        *(
            paths.CONTINUATIONS_ENDPOINT.format(**cell, endpoint=endpoint)
            for endpoint in ("base", "contaminated", "gold")
        ),
        *(
            paths.CONTINUATIONS.format(**model)
            for model in probed(config)
            if cell.items() <= model.items()
        ),
    ]


def probes(config: Config) -> list[str]:
    """What the tables of the probe are made of."""
    cellwise = [
        pattern.format(**cell)
        for cell in cells(config["probe"])
        for pattern in (paths.GENERATIONS, paths.RELEARNING_GOLD)
    ]
    starts = [
        paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint=start(config, cell["model"]))
        for cell in cells(config["probe"])
    ]
    return [*cellwise, *starts, *(paths.RELEARNING.format(**model) for model in probed(config))]


UTILITY = ("base", "contaminated", "gold")
"""The endpoints whose utility is shown beside that of models from which something was deleted."""


def looked_at(config: Config) -> dict[str, Any]:
    """The axes of the models that are made once more to see what is left in them: the probe's."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners")
    probe = config["probe"]
    return {**{key: probe[key] for key in keys}, "budgets": [probe["budget"]]}


def left_models(config: Config) -> list[str]:
    """What the tables of what is left in models are made of, beside the examples."""
    measured, axes = comparison(config), looked_at(config)
    ends = product(cells(axes), UTILITY)
    found = [
        *(paths.NLL_ENDPOINT.format(**cell, endpoint="gold") for cell in cells(measured)),
        *(*removals(measured, paths.NLL), *removals(axes, paths.NLL), *removals(axes)),
        *(paths.NLL_ENDPOINT.format(**cell, endpoint=end) for cell, end in ends),
    ]
    of_cell = [paths.RELAPSES_GOLD, paths.SAID_OF_GOLD]
    of_model = [paths.RELAPSES, paths.SAID_OF]
    if config["utility"]["tasks"]:
        of_cell += [paths.TASKS_ENDPOINT.replace("{endpoint}", end) for end in UTILITY]
        of_model.append(paths.TASKS)
    for cell in cells(axes):
        endpoint = start(config, cell["model"])
        found.append(paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint=endpoint))
        found += [pattern.format(**cell) for pattern in of_cell]
    for name in ("retraining", *axes["unlearners"]):
        for pattern in of_model:
            found += removals(axes, pattern.replace("{unlearner}", name))
    return list(dict.fromkeys(found))


LEFT_ENDPOINTS = ("base", "contaminated", "beta0", "gold")
"""Endpoints that are asked what they know of single texts."""


def left(config: Config) -> list[str]:
    """What the tables of what is left are made of: what each model makes of single texts, and the
    lists that were removed. The base model is the same for every seed, and asked once."""
    axes, found = config["left"], []
    artifacts = (
        (paths.MEMBERSHIP_ENDPOINT, paths.MEMBERSHIP, paths.MEMBERSHIP_UNLEARNED),
        (paths.EXTRACTION_ENDPOINT, paths.EXTRACTION, paths.EXTRACTION_UNLEARNED),
    )
    for cell in cells(axes):
        first = cell["seed"] == axes["seeds"][0]
        for ends, retrained, unlearned in artifacts:
            found += [
                ends.format(**cell, endpoint=endpoint)
                for endpoint in LEFT_ENDPOINTS
                if first or endpoint != "base"
            ]
            for selector, budget in product(axes["selectors"], axes["budgets"]):
                at = {**cell, "selector": selector, "beta": paths.beta(budget)}
                found.append(retrained.format(**at))
                found += [unlearned.format(**at, unlearner=name) for name in axes["unlearners"]]
    return found + removals(axes)


def listed(config: Config) -> list[str]:
    """The model that each unlearner makes of each removal list of one's own, and the perplexity
    before it."""
    axes = config["unlearning"]
    found = []
    for cell in cells(axes):
        endpoint = start(config, cell["model"])
        found.append(paths.PERPLEXITY_ENDPOINT.format(**cell, endpoint=endpoint))
        found += [
            pattern.format(**cell, unlearner=unlearner, list=name)
            for unlearner, name in product(axes["unlearners"], axes["lists"])
            for pattern in (paths.LISTED_TENSORS, paths.LISTED_PERPLEXITY, paths.LISTED_CARD)
        ]
    return found


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
    """One run per dataset and model, the first seed's: what figures of a single run show."""
    first = {**config["grid"], "seeds": config["grid"]["seeds"][:1]}
    return list(cells(first))


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
        for key, names in loader.literals.get("FILES", {}).items():
            if definition[key] is None and not loader.literals.get("DOWNLOADS"):
                wanted = f"a folder with {', '.join(names)}" if names else "the raw file"
                lines.append(f"datasets.{dataset}.{key}: {unset} {wanted}")
    for model in models:
        definition = config["models"][model]
        if "embeddings" in definition:
            if definition["embeddings"]["path"] is None:
                lines.append(f"models.{model}.embeddings.path: {unset} a file of vectors")
        elif definition["source"] is None:
            lines.append(f"models.{model}.source: {unset} a model's folder, or its id on the hub")
    if lines:
        raise ConfigError(lines)
