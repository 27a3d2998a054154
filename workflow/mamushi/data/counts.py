"""How many texts the settings of a comparison take: known before anything runs, and held against a
dataset as soon as its texts have been counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from mamushi.config.checks import comparisons
from mamushi.config.reading import ConfigError
from mamushi.config.sections import axes_sections
from mamushi.config.selectors import chain
from mamushi.config.sources import unlabelled
from mamushi.io.domains import DOMAINS

_FOLDS = ".folds"
"""How the key of a need of folds ends."""


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
    by_key: dict[str, Need] = {}
    for where, axes in comparisons(config):
        if where in axes_sections() or dataset not in axes["datasets"]:
            continue
        selectors = [*axes["selectors"], config["removal"]["ratio"]]
        for name in [link for selector in selectors for link in chain(config, selector)]:
            folds = config["selectors"][name].get("folds")
            if folds is not None:
                key, least = f"selectors.{name}{_FOLDS}", 4 if folds == 2 else folds
                by_key[key] = Need(key, folds, least, least, "lower it")
        # A budget as it is written: 1/0.07 is no whole number, and 1/0.1 is 10.
        key, beta = f"{where}.budgets", min(axes["budgets"])
        least = math.ceil(1 / Fraction(str(beta)))
        # Of a corpus that nobody labelled, its own texts are listed.
        listed = (0, least) if unlabelled(config["datasets"][dataset]) else (least, 0)
        by_key[key] = Need(key, beta, *listed, "raise it")
    return list(by_key.values())


def require_texts(
    dataset: str,
    settings_needs: Iterable[Need],
    texts: Mapping[str, int],
    groups: Mapping[str, int] | None = None,
) -> None:
    """Raise ``ConfigError`` with a line for each need that the ``texts`` of the inference
    section, by domain, do not meet; where there are ``groups``, folds need as many of these."""
    lines = []
    for need in settings_needs:
        by_group = groups is not None and need.key.endswith(_FOLDS)
        counts, unit = (groups or {}, "groups of ") if by_group else (texts, "")
        for domain, least in zip(DOMAINS, (need.forget, need.retain), strict=True):
            count = counts.get(domain, 0)
            if count < least:
                takes = f"{need.key}: {need.value:g} takes at least {least} {unit}{domain} texts"
                inside = f"the inference section of the dataset {dataset!r} has {count}"
                finer = ", a finer column 'group' or null" if by_group else ""
                lines.append(f"{takes}, and {inside}; {need.do}, or give it more texts{finer}")
    if lines:
        raise ConfigError(lines)
