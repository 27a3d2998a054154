"""The settings of each stage: out of the whole configuration, just what the stage depends on.

A rule hands them to its command as one JSON object and keeps the same text as its parameter, so
that a change of configuration runs again exactly what it affects. ``code`` is the digest of the
modules that the stage imports. All functions take the configuration that ``config.complete`` gave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mamushi.artifacts.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.configuration import grid
from mamushi.registry import plugin
from mamushi.running.identity import digest

Config = Mapping[str, Any]

ENDPOINTS: Mapping[str, tuple[str, list[str]]] = {
    "contaminated": (CONTAMINATION, [FORGET, RETAIN]),
    "beta0": (INFERENCE, [FORGET, RETAIN]),
    "gold": (INFERENCE, [RETAIN]),
}
"""Endpoint -> the section and the domains that it is trained on."""

TABLES = ("sad", "sad_summary", "selection")
"""What the stage ``tables`` writes, each as Parquet and CSV."""

FIGURES = ("sad", "perplexity")
"""What the stage ``figure`` draws of the grid."""

UNLEARNING_TABLES = ("unlearning", "half_gap")
"""What the stage ``half_gap`` writes, each as Parquet and CSV."""

PROBE_TABLES = ("generations", "relearning")
"""What the stage ``probes`` writes, each as Parquet and CSV."""

UNLEARNING_FIGURES = ("half_gap", "relearning")
"""What the stage ``figure`` draws of unlearning."""

EVIDENCE_TABLES = (
    "frontier",
    "advice",
    "diagnostics",
    "geometry",
    "runtime",
    "paper",
    "theory",
)
"""What the stage ``evidence`` writes, each as Parquet and CSV."""

RUN_FIGURES = ("diagnostics", "variance", "discrimination", "subspaces")
"""What the stage ``figure`` draws of one run."""

COUNTED = ("trained_blocks", "train_input_embedding", "train_output_head", "train_final_norm")
"""Settings of `training` that decide which parameters are trained."""


PROBING = ("mamushi.stages._probing.speak", "mamushi.stages._probing.learn_again")
"""What the stage ``unlearn`` calls by name where it probes."""


def as_json(settings: Mapping[str, Any]) -> str:
    """The settings as the one canonical text that is compared and handed over."""
    return json.dumps(settings, sort_keys=True)


def _code(stage: str, *plugins: str) -> str:
    return digest(f"mamushi.stages.{stage}", *plugins)


def examples(config: Config, dataset: str) -> dict[str, Any]:
    """Settings of the stage ``examples``."""
    definition = config["datasets"][dataset]
    loader = plugin("dataset", definition["kind"])
    return {
        "dataset": dataset,
        "kind": definition["kind"],
        "loader": {key: definition[key] for key in loader.settings},
        "sections": definition["sections"],
        "limit": definition["limit"],
        "data": config["data"],
        "code": _code("examples", loader.module),
    }


def _counted(config: Config, model: str) -> dict[str, Any]:
    training = config["models"][model]["training"]
    return {key: training[key] for key in COUNTED}


def base_model(config: Config, model: str) -> dict[str, Any]:
    """Settings of the stage ``base_model``: the tiny model's definition."""
    definition = {
        key: value
        for key, value in config["models"][model].items()
        if key not in ("training", "contaminated", "base")
    }
    return {
        "name": model,
        **definition,
        "code": _code("base_model"),
    }


def model_card(config: Config, model: str) -> dict[str, Any]:
    """Settings of the stage ``model_card``: where the model is."""
    definition = config["models"][model]
    return {
        "name": model,
        "source": definition["source"],
        "revision": definition["revision"],
        "trust_remote_code": definition["trust_remote_code"],
        "contaminated": definition["contaminated"],
        "code": _code("model_card"),
    }


def tokens(config: Config) -> dict[str, Any]:
    """Settings of the stage ``tokens``."""
    return {**config["tokens"], "code": _code("tokens")}


def endpoint(config: Config, dataset: str, model: str, seed: int, role: str) -> dict[str, Any]:
    """Settings of the stage ``finetune`` for contaminated, gold or beta 0."""
    section, domains = ENDPOINTS[role]
    training = config["models"][model]["training"]
    if role != "gold":
        # Matched to the steps of beta 0 or not is the same for those two.
        training = {**training, "steps": "by_data"}
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        "role": role,
        "section": section,
        "domains": domains,
        "training": training,
        "code": _code("finetune"),
    }


def retrain(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``retrain``: beta 0 but for the removal list, and measured."""
    return {
        **endpoint(config, dataset, model, seed, "beta0"),
        "role": "retrained",
        "training": config["models"][model]["training"],
        "evaluation": config["evaluation"],
        "code": _code("retrain"),
    }


def embed(config: Config, model: str) -> dict[str, Any]:
    """Settings of the stage ``embed``; no ``training`` for a model that embeds as it is."""
    ready = config["models"][model].get("contaminated", False)
    return {
        "embedding": config["embedding"],
        "training": None if ready else _counted(config, model),
        "code": _code("embed"),
    }


def evaluate(config: Config, model: str, endpoint: str) -> dict[str, Any]:
    """Settings of the stage ``evaluate``."""
    return {
        **_opened(config, model, endpoint),
        "evaluation": config["evaluation"],
        "code": _code("evaluate"),
    }


def selector(config: Config, name: str) -> dict[str, Any]:
    """A selector's kind and settings, under the name that the configuration gives it."""
    definition = config["selectors"][name]
    known = plugin("selector", definition["kind"])
    return {
        "selector": name,
        "kind": definition["kind"],
        "settings": {key: definition[key] for key in known.settings},
    }


def derives(config: Config, name: str) -> str | None:
    """The selector whose scores this one is derived from, if any."""
    definition = config["selectors"][name]
    key = plugin("selector", definition["kind"]).literals.get("DERIVES")
    return str(definition[key]) if key else None


def score(config: Config, name: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``score``."""
    chosen = selector(config, name)
    module = plugin("selector", chosen["kind"]).module
    return {**chosen, "seed": seed, "code": _code("score", module)}


def remove(config: Config, beta: str) -> dict[str, Any]:
    """Settings of the stage ``remove``: a list depends on the ranking and its budget alone."""
    return {"beta": float(beta), "code": _code("remove")}


def manifests(config: Config, dataset: str, model: str, seed: int, name: str) -> dict[str, Any]:
    """Settings of the stage ``manifests``."""
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        **selector(config, name),
        "budgets": grid.budgets(config),
        "code": _code("manifests"),
    }


def unlearner(config: Config, name: str) -> dict[str, Any]:
    """An unlearner's kind, settings and training, under the name that the configuration gives."""
    definition = config["unlearners"][name]
    known = plugin("unlearner", definition["kind"])
    return {
        "unlearner": name,
        "kind": definition["kind"],
        "settings": {key: definition[key] for key in known.settings},
        "training": definition["training"],
    }


def _opened(config: Config, model: str, endpoint: str) -> dict[str, Any]:
    """How the model of an endpoint is opened: what its tensors hold, None without any."""
    alone = grid.as_it_is(config, model, endpoint)
    # Trained from whatever base, an endpoint is trained as the model of its run is.
    return {
        "training": None if alone else _counted(config, model),
        "precision": config["models"][model]["training"]["precision"],
    }


def _started(config: Config, model: str) -> dict[str, Any]:
    """How the model that unlearning starts from is opened, and what of it is trained then."""
    return {
        "start": _opened(config, model, grid.start(config, model)),
        "trained_blocks": config["unlearning"]["trained_blocks"],
        "max_length": config["unlearning"]["max_length"],
        "evaluation": config["evaluation"],
    }


def unlearn(config: Config, dataset: str, model: str, seed: int, name: str) -> dict[str, Any]:
    """Settings of the stage ``unlearn``; the same for every selector, budget and list."""
    chosen = unlearner(config, name)
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        **chosen,
        **_started(config, model),
        "code": _code("unlearn", plugin("unlearner", chosen["kind"]).module),
    }


def unlearn_and_probe(
    config: Config, dataset: str, model: str, seed: int, name: str
) -> dict[str, Any]:
    """Settings of the stage ``unlearn`` where the model is also probed."""
    plain = unlearn(config, dataset, model, seed, name)
    module = plugin("unlearner", plain["kind"]).module
    return {
        **plain,
        "probe": {key: config["probe"][key] for key in ("prompts", "new_tokens", "relearning")},
        "code": _code("unlearn", module, *PROBING),
    }


def refine(
    config: Config, dataset: str, model: str, unlearner: str, selector: str
) -> dict[str, Any]:
    """Settings of the stage ``refine``."""
    axes = config["unlearning"]
    return {
        "dataset": dataset,
        "model": model,
        "unlearner": unlearner,
        "selector": selector,
        "start": grid.start(config, model),
        **{key: axes[key] for key in ("seeds", "budgets", "fine", "target")},
        "code": _code("refine"),
    }


def swept(config: Config) -> dict[str, Any]:
    """The axes of ``unlearning``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budgets")
    return {key: config["unlearning"][key] for key in keys}


def probed(config: Config) -> dict[str, Any]:
    """The axes of ``probe``."""
    keys = ("datasets", "models", "seeds", "selectors", "unlearners", "budget")
    return {key: config["probe"][key] for key in keys}


def half_gap(config: Config) -> dict[str, Any]:
    """Settings of the stage ``half_gap``."""
    axes = config["unlearning"]
    return {
        "grid": swept(config),
        "starts": {model: grid.start(config, model) for model in axes["models"]},
        **{key: axes[key] for key in ("target", "retain_cap", "resamples")},
        "code": _code("half_gap"),
    }


def generate(config: Config, model: str, endpoint: str) -> dict[str, Any]:
    """Settings of the stage ``generate``: an endpoint's continuations of the prompts."""
    return {
        **_opened(config, model, endpoint),
        "probe": {key: config["probe"][key] for key in ("prompts", "new_tokens")},
        "code": _code("generate"),
    }


def relearn(config: Config, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``relearn``: the gold model's curve, for comparison."""
    return {
        "seed": seed,
        **_opened(config, model, "gold"),
        "trained_blocks": config["unlearning"]["trained_blocks"],
        "max_length": config["unlearning"]["max_length"],
        "evaluation": config["evaluation"],
        "relearning": config["probe"]["relearning"],
        "code": _code("relearn"),
    }


def judge(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``judge``: the gold model reads what all models of a run said."""
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        **_opened(config, model, "gold"),
        "code": _code("judge"),
    }


def probes(config: Config) -> dict[str, Any]:
    """Settings of the stage ``probes``."""
    return {
        "grid": probed(config),
        "starts": {model: grid.start(config, model) for model in config["probe"]["models"]},
        "code": _code("probes"),
    }


def frontier(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``frontier``."""
    kinds = {name: selector(config, name)["kind"] for name in config["grid"]["selectors"]}
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        "budgets": sorted({*config["evidence"]["budgets"], *config["grid"]["budgets"]}),
        "by_chance": {
            name: bool(plugin("selector", kind).literals.get("BY_CHANCE"))
            for name, kind in kinds.items()
        },
        "resamples": config["evidence"]["resamples"],
        "code": _code("frontier"),
    }


def diagnostics(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``diagnostics``."""
    return {"dataset": dataset, "model": model, "seed": seed, "code": _code("diagnostics")}


def geometry(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``geometry``."""
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        "components": config["evidence"]["components"],
        "code": _code("geometry"),
    }


def runtime(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``runtime``; ``bases`` are what derived selectors start from."""
    timed = list(config["grid"]["selectors"])
    bases: list[str] = []
    for name in timed:
        while (found := derives(config, name)) is not None and found not in timed + bases:
            bases.append(found)
            name = found
    chosen = [selector(config, name) for name in timed + bases]
    modules = {plugin("selector", each["kind"]).module for each in chosen}
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        "selectors": chosen[: len(timed)],
        "bases": chosen[len(timed) :],
        **config["evidence"]["runtime"],
        "code": _code("runtime", *sorted(modules)),
    }


def ranking(config: Config, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``ranking``."""
    return {
        "dataset": dataset,
        "model": model,
        "seed": seed,
        "budgets": grid.budgets(config),
        "code": _code("ranking"),
    }


def qualitative(config: Config) -> dict[str, Any]:
    """Settings of the stage ``qualitative``."""
    return {
        "runs": grid.shown(config),
        "selector": config["removal"]["ratio"],
        "code": _code("qualitative"),
    }


def evidence(config: Config) -> dict[str, Any]:
    """Settings of the stage ``evidence``."""
    return {
        "runs": list(grid.cells(config["grid"])),
        "runtime_runs": grid.shown(config),
        "selector": config["removal"]["ratio"],
        "sad": config["evidence"]["measured"],
        "targets": config["evidence"]["targets"],
        "theory": {"worlds": config["evidence"]["worlds"], "seed": 0},
        "code": _code("evidence"),
    }


def run_figure(config: Config, name: str, dataset: str, model: str, seed: int) -> dict[str, Any]:
    """Settings of the stage ``figure`` for a figure of one run."""
    shown: dict[str, Any] = {"dataset": dataset, "model": model, "seed": seed}
    if name == "diagnostics":
        shown["selector"] = config["removal"]["ratio"]
    return figure(config, shown, name)


def tables(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the stage ``tables`` for the grid or a study."""
    return {"grid": dict(comparison), "code": _code("tables")}


def figure(config: Config, comparison: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Settings of the stage ``figure`` for the grid or a study."""
    return {
        "name": name,
        "figures": config["figures"],
        "grid": dict(comparison),
        "code": _code("figure", plugin("figure", name).module),
    }
