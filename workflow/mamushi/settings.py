"""The settings of each stage: out of the whole configuration, just what the stage depends on.

A rule hands them to its command as one JSON object and keeps the same text as its parameter, so
that a change of configuration runs again exactly what it affects. ``code`` is the digest of the
modules that the stage imports. All functions take the configuration that ``config.complete`` gave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mamushi import grid
from mamushi.closure import digest
from mamushi.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.registry import plugin

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
"""What the stage ``figure`` draws."""

COUNTED = ("trained_blocks", "train_input_embedding", "train_output_head", "train_final_norm")
"""Settings of `training` that decide which parameters are trained."""


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


def evaluate(config: Config, model: str) -> dict[str, Any]:
    """Settings of the stage ``evaluate``."""
    return {
        "evaluation": config["evaluation"],
        "training": _counted(config, model)
        | {"precision": config["models"][model]["training"]["precision"]},
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
