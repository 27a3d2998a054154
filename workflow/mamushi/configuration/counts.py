"""How many texts the settings of a comparison take: known before anything runs, and held against a
dataset as soon as its texts have been counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from mamushi.artifacts.domains import DOMAINS
from mamushi.configuration.checks import WITHOUT_MANIFESTS, chain, comparisons
from mamushi.configuration.complete import ConfigError


class Need(NamedTuple):
    """Texts of each domain that a setting takes in the inference section."""

    key: str
    value: float
    forget: int
    retain: int
    do: str


def needs(config: Mapping[str, Any], dataset: str) -> list[Need]:
    """Return what the grid and the studies take of a dataset: a text of each domain for every fold
    of a selector that cross-fits (as ``stratified_folds`` asks for), and a forget text at every
    budget.

    Not what unlearning takes, which is not asked for by every run that could ask for it.
    """
    found: dict[str, Need] = {}
    for where, axes in comparisons(config):
        if where in WITHOUT_MANIFESTS or dataset not in axes["datasets"]:
            continue
        asked = [*axes["selectors"], config["removal"]["ratio"]]
        for name in [link for one in asked for link in chain(config, one)]:
            folds = config["selectors"][name].get("folds")
            if folds is not None:
                key, least = f"selectors.{name}.folds", 4 if folds == 2 else folds
                found[key] = Need(key, folds, least, least, "lower it")
        # A budget as it is written: 1/0.07 is no whole number, and 1/0.1 is 10.
        key, beta = f"{where}.budgets", min(axes["budgets"])
        found[key] = Need(key, beta, math.ceil(1 / Fraction(str(beta))), 0, "raise it")
    return list(found.values())


def check(dataset: str, asked: Iterable[Need], found: Mapping[str, int]) -> None:
    """Raise ``ConfigError`` with a line for each need that the texts ``found`` in the inference
    section, by domain, do not meet."""
    lines = [
        f"{need.key}: {need.value:g} takes at least {least} {domain} texts, and the inference "
        f"section of the dataset {dataset!r} has {found.get(domain, 0)}; {need.do}, or give it "
        "more texts"
        for need in asked
        for domain, least in zip(DOMAINS, (need.forget, need.retain), strict=True)
        if found.get(domain, 0) < least
    ]
    if lines:
        raise ConfigError(lines)
