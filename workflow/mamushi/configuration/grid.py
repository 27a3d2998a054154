"""What a configuration asks for: the cells of its grid and studies, and the artifacts of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from mamushi.artifacts import paths
from mamushi.configuration import arms
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
    if "embeddings" not in config["models"][model]:
        return None
    return (
        f"models.{model}: has embeddings made elsewhere and is no language model, which all that "
        "trains, generates or measures needs; ask for the targets removals and evidence"
    )


def require_language_models(config: Config, axes: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` with a line for each model of the axes that is no language model."""
    found = [no_language_model(config, model) for model in axes["models"]]
    lines = [line for line in found if line is not None]
    if lines:
        raise ConfigError(lines)


def unmeasurable(config: Config, dataset: str, model: str) -> str | None:
    """Why retraining cannot be measured for this pair, or None when it can."""
    if reason := no_language_model(config, model):
        return reason
    if arms.base(config, model) is None:
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


def retrained(axes: Mapping[str, Any], pattern: str = paths.PERPLEXITY) -> list[str]:
    """The perplexity of every retrained model, or what ``pattern`` has of it."""
    return removals(axes, pattern.replace("{arm}", arms.RETRAINED))


def measurements(axes: Mapping[str, Any], pattern: str = paths.PERPLEXITY) -> list[str]:
    """What the tables are made of: every cell's perplexity, at its ends and at each budget; or
    what ``pattern`` has of these models."""
    ends = [pattern.format(**cell, arm=end) for cell in cells(axes) for end in ("gold", "beta0")]
    return ends + retrained(axes, pattern)


def stepped(config: Config, model: str) -> bool:
    """Whether how long this model is trained depends on what is removed, and that is measured."""
    by_data = config["models"][model]["training"]["steps"] == "by_data"
    return bool(config["evaluation"]["matched_gold"]) and by_data


def matched(config: Config, axes: Mapping[str, Any]) -> list[str]:
    """The perplexities that tell what of SAD is the number of steps; see ``evaluation.curves``."""
    return [
        paths.PERPLEXITY.format(**cell, arm=endpoint)
        for cell in cells(axes)
        if stepped(config, cell["model"])
        for endpoint in STEPPED
    ]


def knows_truth(config: Config, axes: Mapping[str, Any]) -> bool:
    """Whether a selector ranks by the exact ratio, which only datasets that know it can have."""
    kinds = {config["selectors"][name]["kind"] for name in axes["selectors"]}
    return any(plugin("selector", kind).literals.get("NEEDS_TRUTH") for kind in kinds)


def sweeps(config: Config) -> list[dict[str, str]]:
    """Every dataset, model, unlearner and selector of ``unlearning``: the wildcards of a sweep."""
    axes = config["unlearning"]
    names = ("dataset", "model", "unlearner", "selector")
    lists = (axes[f"{name}s"] for name in names)
    return [dict(zip(names, pair, strict=True)) for pair in product(*lists)]


def curve(config: Config, pair: Mapping[str, str], budgets: Iterable[float]) -> list[str]:
    """The perplexities of a sweep: every seed's at ``budgets``."""
    cell = {"dataset": pair["dataset"], "model": pair["model"]}
    return [
        paths.PERPLEXITY.format(
            **cell, seed=seed, arm=arms.unlearned(pair["unlearner"], pair["selector"], budget)
        )
        for seed in config["unlearning"]["seeds"]
        for budget in budgets
    ]


def ends(config: Config, dataset: str, model: str, unlearners: Iterable[str]) -> list[str]:
    """The perplexities at both ends of all curves: the start, the gold standard that they aim at,
    and each unlearner on the whole forget set."""
    names = dict.fromkeys([arms.start(config, model), "gold", *map(arms.whole, unlearners)])
    return [
        paths.PERPLEXITY.format(dataset=dataset, model=model, seed=seed, arm=arm)
        for seed in config["unlearning"]["seeds"]
        for arm in names
    ]


def retrained_curves(config: Config, dataset: str, model: str) -> list[str]:
    """The perplexities of the curves of retraining, which start at beta 0."""
    axes = {**config["unlearning"], "datasets": [dataset], "models": [model]}
    first = [paths.PERPLEXITY.format(**cell, arm="beta0") for cell in cells(axes)]
    return first + retrained(axes)


UTILITY = ("base", "contaminated", "gold")
"""The endpoints that stand beside models from which something was deleted: what they say, and what
they can still do."""


def probed(config: Config) -> dict[str, Any]:
    """The axes of the models that are probed."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners")
    probe = config["probe"]
    return {**{key: probe[key] for key in keys}, "budgets": [probe["budget"]]}


def deleted(axes: Mapping[str, Any], *, retraining: bool) -> list[str]:
    """The arms of a cell from which the axes' lists were deleted, by retraining or unlearners."""
    pairs = list(product(axes["selectors"], axes["budgets"]))
    first = [arms.retrained(*pair) for pair in pairs] if retraining else []
    return first + [
        arms.unlearned(unlearner, *pair) for unlearner in axes["unlearners"] for pair in pairs
    ]


def generations(config: Config, run: Mapping[str, Any]) -> list[str]:
    """What the models of a probed run said: its endpoints, then the unlearned ones."""
    cell = {"dataset": run["dataset"], "model": run["model"], "seed": int(run["seed"])}
    axes = probed(config)
    found = deleted(axes, retraining=False) if cell in cells(axes) else []
    return [paths.GENERATIONS.format(**cell, arm=arm) for arm in (*UTILITY, *found)]


def probes(config: Config) -> list[str]:
    """What the tables of the probe are made of."""
    axes = probed(config)
    found = []
    for cell in cells(axes):
        start = arms.start(config, cell["model"])
        found += [paths.JUDGED.format(**cell), paths.PERPLEXITY.format(**cell, arm=start)]
        found += [
            paths.RELEARNING.format(**cell, arm=arm)
            for arm in ("gold", *deleted(axes, retraining=False))
        ]
    return found


def left_models(config: Config) -> list[str]:
    """What the tables of what is left in models are made of, beside the examples."""
    measured, axes = comparison(config), probed(config)
    found = [paths.NLL.format(**cell, arm="gold") for cell in cells(measured)]
    found += [*retrained(measured, paths.NLL), *retrained(axes, paths.NLL)]
    for cell in cells(axes):
        models = deleted(axes, retraining=True)
        wanted = {
            paths.NLL: UTILITY,
            paths.PERPLEXITY: [arms.start(config, cell["model"])],
            paths.RELAPSE: ["gold", *models],
            paths.RELAPSE_NLL: deleted(axes, retraining=False),
            paths.TASKS: [*UTILITY, *models] if config["utility"]["tasks"] else [],
        }
        found += [
            pattern.format(**cell, arm=arm)
            for pattern, several in wanted.items()
            for arm in several
        ]
    return list(dict.fromkeys(found))


def left(config: Config) -> list[str]:
    """What the tables of what is left are made of: what each model makes of single texts, and the
    lists that were removed. The base model is the same for every seed, and asked once."""
    axes = config["left"]
    return [
        pattern.format(**cell, arm=arm)
        for cell in cells(axes)
        for pattern in (paths.MEMBERSHIP, paths.EXTRACTION)
        for arm in ("base", "contaminated", "beta0", "gold", *deleted(axes, retraining=True))
        if arm != "base" or cell["seed"] == axes["seeds"][0]
    ] + removals(axes)


def listed(config: Config) -> list[str]:
    """The model that each unlearner makes of each removal list of one's own, and the perplexity
    before it."""
    axes = config["unlearning"]
    found = []
    for cell in cells(axes):
        start = arms.start(config, cell["model"])
        found.append(paths.PERPLEXITY.format(**cell, arm=start))
        found += [
            pattern.format(**cell, arm=arms.LISTED.format(unlearner=unlearner, list=name))
            for unlearner, name in product(axes["unlearners"], axes["lists"])
            for pattern in (paths.TRAINED, paths.PERPLEXITY, paths.CARD)
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
