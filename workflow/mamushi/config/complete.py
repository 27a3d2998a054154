"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

The declaration in ``sections`` and the ``Settings`` of the plug-ins say everything that is checked
one section at a time; ``checks`` has the rest. Mistakes are told together, a line each, before
anything runs. Nothing heavy is imported, since this runs whenever a Snakefile is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import create_model

from mamushi.config import sections
from mamushi.config.checks import check_names, checks, comparisons
from mamushi.config.kinds import Config, ConfigError, Section, read_section, refuse
from mamushi.config.selectors import derives, of_texts
from mamushi.errors import instead
from mamushi.registry import plugin, plugins


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with types coerced, every default filled in and paths resolved.

    ``selectors`` then has every selector that the grid, a study or ``removal.ratio`` uses, with its
    ``kind`` and all settings; ``models.*.training`` is ``training`` with the model's own changes.
    A study says what it takes from the grid, and so do ``unlearning`` and ``probe``. An environment
    variable that is not set makes its whole path null. Raises ``ConfigError``.
    """
    full = read_section(sections.configuration(), config)
    mistakes: list[str] = []
    for kind in ("dataset", "model", "selector", "unlearner"):
        definitions = full[f"{kind}s"]
        for name, definition in definitions.items():
            try:
                definitions[name] = _read_definition(full, kind, name, definition)
            except ConfigError as error:
                mistakes += error.lines
    refuse(mistakes)
    full["studies"] = {k: axes for k, axes in (full["studies"] or {}).items() if axes is not None}
    full["removal"]["ratio"] = full["removal"]["ratio"] or _default_ratio(full)
    _add_plugins(full)
    _fill_axes(full)
    for dataset in full["datasets"].values():
        dataset["sections"] = {k: v for k, v in dataset["sections"].items() if v > 0}
    # Whoever read the files has laid them over each other.
    del full["extends"]
    refuse(check_names(full))
    refuse(checks(full))
    return full


def _read_definition(full: Config, kind: str, name: str, definition: Config) -> dict[str, Any]:
    """Return a definition with all its keys. Its training is the shared one with its changes, and a
    selector's or an unlearner's plug-in has its name unless it says another ``kind``. Raises
    ``ConfigError``."""
    at, training = f"{kind}s.{name}", full["training"]
    if kind == "model":
        section = sections.sort_of(definition)
    else:
        default = {"kind": name} if kind != "dataset" and name in plugins(kind) else {}
        definition, training = default | dict(definition), full["unlearning"]["training"]
        of = definition.get("kind")
        if not isinstance(of, str) or of not in plugins(kind):
            raise ConfigError([f"{at}.kind: {of!r} is not allowed; {instead(of, plugins(kind))}"])
        section = plugin_section(kind, of)
    changes = definition.get("training", {})
    if "training" in section.model_fields and isinstance(changes, dict):
        definition = {**definition, "training": laid_over(training, changes)}
    return read_section(section, definition, at)


def laid_over(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with changes to them, of sections within sections as well."""
    both = {**values, **changes}
    for key in values.keys() & changes.keys():
        if isinstance(values[key], dict) and isinstance(changes[key], dict):
            both[key] = laid_over(values[key], changes[key])
    return both


@cache
def plugin_section(kind: str, name: str) -> type[Section]:
    """Return the keys of a definition of a plug-in: those of its kind, and its settings."""
    every: dict[str, type[Section]]
    every = {"selector": sections.Selector, "unlearner": sections.Unlearner}
    of_kind = every.get(kind) or sections.dataset()
    return create_model(name, __base__=(plugin(kind, name).section, of_kind))


def _default_ratio(full: Config) -> str:
    """Return the selector that estimates the ratio where the configuration names none: mamushi, or
    where the grid does without it the first of the grid's own that cross-fits texts, so that
    nothing is scored that nobody asked for."""
    names = full["grid"]["selectors"]
    for name in names if "mamushi" not in names else ():
        kind = full["selectors"].get(name, {"kind": name})["kind"]
        selector = plugins("selector").get(kind)
        if selector and "folds" in selector.settings and selector.unit == "texts":
            return str(name)
    return "mamushi"


def _add_plugins(full: dict[str, Any]) -> None:
    """Add a definition of each selector and unlearner that is asked for by the name of its kind, or
    that another selector derives from."""
    for kind in ("selector", "unlearner"):
        definitions = full[f"{kind}s"]
        names = [name for _, axes in comparisons(full) for name in axes.get(f"{kind}s") or ()]
        if kind == "selector":
            names += [full["removal"]["ratio"], *full["evidence"]["compared"], *definitions]
        for name in names:
            if name not in definitions and name in plugins(kind):
                definitions[name] = _read_definition(full, kind, name, {})
            if kind == "selector" and name in definitions:
                base = derives(full, name)
                names += [base] if base is not None and base not in names else []


def _fill_axes(full: dict[str, Any]) -> None:
    """Take what studies and sections with lists of their own leave out from the grid."""
    unlearning, grid = full["unlearning"], full["grid"]

    def lay_under(axes: dict[str, Any], lists: Mapping[str, Any]) -> None:
        axes |= {key: lists[key] for key in axes if axes[key] is None and key in lists}

    lay_under(unlearning, of_texts(full, grid))
    lay_under(full["probe"], unlearning | {"seeds": unlearning["seeds"][:1]})
    for _, axes in comparisons(full):
        lay_under(axes, grid)
    unlearning["max_length"] = unlearning["max_length"] or full["tokens"]["max_length"]
