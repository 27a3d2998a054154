"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

The declaration in ``sections`` and the literal ``SETTINGS`` of the plug-ins say everything that is
checked one key at a time; ``checks`` has the rest. All mistakes are reported at once, a line each,
before anything runs. Nothing heavy is imported, since this runs on the head node and in every job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from mamushi.configuration import models
from mamushi.configuration.checks import CHECKS, WITHOUT_MANIFESTS, check_names, other_selectors
from mamushi.configuration.schema import Rule, coerced, filled, plain, rule_of, violations
from mamushi.configuration.sections import Configuration
from mamushi.errors import UserError
from mamushi.registry import plugin, plugins


class ConfigError(UserError):
    """One or more mistakes in the configuration; ``lines`` has a line for each."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [" ".join(line.split()) for line in lines]
        super().__init__(self.lines[0])
        self.args = ("\n".join(self.lines),)


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with types coerced, every default filled in and paths resolved.

    ``selectors`` then has every selector that the grid, a study or ``removal.ratio`` uses, with its
    ``kind`` and all settings; ``models.*.training`` is ``training`` with the model's own changes.
    A study says what it takes from the grid, and so do ``unlearning`` and ``probe``. An environment
    variable that is not set makes its whole path null. Raises ``ConfigError``.
    """
    given = plain(config)
    rule = composed(given)
    given = coerced(given, rule)
    _raise(violations(given, rule))
    full: dict[str, Any] = filled(given, rule)
    # Whoever read the files has laid them over each other.
    del full["extends"]
    full["studies"] = {k: v for k, v in (full["studies"] or {}).items() if v is not None}
    for study in full["studies"].values():
        study.update({axis: v for axis, v in full["grid"].items() if study.get(axis) is None})
    _fill_unlearning(full)
    for model in full["models"].values():
        changed = {"lora": {}, **model.get("training", {})}
        changed["lora"] = {**full["training"]["lora"], **changed["lora"]}
        model["training"] = {**full["training"], **changed}
    for dataset in full["datasets"].values():
        dataset["sections"] = {k: v for k, v in dataset["sections"].items() if v > 0}
    _raise(check_names(full))
    _raise(line for check in CHECKS for line in check(full))
    return full


def _fill_unlearning(full: dict[str, Any]) -> None:
    """Take what ``unlearning``, ``probe`` and ``left`` leave out from the grid, and what a training
    of an unlearner leaves out from the shared one."""
    unlearning, probe = full["unlearning"], full["probe"]
    for axis in ("datasets", "models", "seeds", "selectors"):
        unlearning.setdefault(axis, full["grid"][axis])
    for axis in ("datasets", "models", "seeds"):
        full["left"].setdefault(axis, full["grid"][axis])
    for axis in ("datasets", "models"):
        probe.setdefault(axis, unlearning[axis])
    probe.setdefault("seeds", unlearning["seeds"][:1])
    if unlearning["max_length"] is None:
        unlearning["max_length"] = full["tokens"]["max_length"]
    for unlearner in full["unlearners"].values():
        unlearner["training"] = {**unlearning["training"], **unlearner["training"]}


def _raise(lines: Iterable[str]) -> None:
    mistakes = list(dict.fromkeys(lines))
    if mistakes:
        raise ConfigError(mistakes)


# The schema of one configuration ------------------------------------------------------------------


@cache
def declared() -> Rule:
    """Return the schema of all configurations. Not to be changed in place."""
    return rule_of(Configuration)


def composed(config: Mapping[str, Any]) -> Rule:
    """Return the schema for this configuration: each dataset, selector and unlearner with its
    plug-in's settings, each model with the keys of its sort."""
    rule = declared()
    sections = dict(rule["properties"])

    def define(section: str, rules: Rule) -> None:
        sections[section] = {**sections[section], "properties": rules}

    def with_plugins(section: str, kind: str, found: Mapping[str, Any]) -> Rule:
        each = sections[section]["additionalProperties"]
        return {name: _with_plugin(each, kind, name, found[name]) for name in found}

    define("datasets", with_plugins("datasets", "dataset", _definitions(config, "datasets")))
    define("selectors", with_plugins("selectors", "selector", _selectors(config)))
    define("unlearners", with_plugins("unlearners", "unlearner", _unlearners(config)))
    found = _definitions(config, "models")
    define("models", {name: rule_of(models.sort_of(model)) for name, model in found.items()})
    sections["models"]["additionalProperties"] = rule_of(models.HubModel)
    return {**rule, "properties": sections}


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of the configuration, empty where it is missing or has another shape."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _definitions(config: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """Return the definitions in a section, as far as they have the right shape."""
    found = _section(config, section)
    return {name: each for name, each in found.items() if isinstance(each, dict)}


def _asked(config: Mapping[str, Any], what: str) -> Iterator[str]:
    """Yield the selectors or unlearners that are asked for, or are so by default."""
    for name in ("grid", *WITHOUT_MANIFESTS):
        setting = declared()["properties"][name]["properties"].get(what, {})
        yield from _names(_section(config, name).get(what, setting.get("default")))
    for study in _definitions(config, "studies").values():
        yield from _names(study.get(what))


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _selectors(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the given definitions of selectors, and an empty one for each known selector that is
    asked for elsewhere or that another derives from."""
    found = _definitions(config, "selectors")
    ratio = declared()["properties"]["removal"]["properties"]["ratio"]["default"]
    waiting: list[Any] = [*_asked(config, "selectors")]
    waiting.append(_section(config, "removal").get("ratio", ratio))
    seen: set[str] = set()
    for name in waiting:
        if isinstance(name, str) and name not in seen:
            seen.add(name)
            if name in plugins("selector"):
                found.setdefault(name, {})
            waiting += [other for _, other in other_selectors(found.get(name, {}), name)]
    return found


def _unlearners(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the given definitions of unlearners, and an empty one for each known one asked for."""
    found = _definitions(config, "unlearners")
    for name in _asked(config, "unlearners"):
        if name in plugins("unlearner"):
            found.setdefault(name, {})
    return found


def _with_plugin(rule: Rule, kind: str, name: str, definition: Mapping[str, Any]) -> Rule:
    """Return ``rule`` with the settings of a definition's plug-in as further keys; an unknown one
    fails at ``kind``."""
    known = plugins(kind)
    default = None if kind == "dataset" else name
    asked = definition.get("kind", default)
    of_kind = {**rule["properties"]["kind"], "enum": list(known)}
    properties = {**rule["properties"], "kind": of_kind}
    if not isinstance(asked, str) or asked not in known:
        return {**rule, "properties": properties, "required": ["kind"]}
    settings = deepcopy(dict(plugin(kind, asked).settings))
    for key in plugin(kind, asked).literals.get("FILES", {}):
        settings[key]["format"] = "path"
    required = [*rule["required"], *(k for k, each in settings.items() if "default" not in each)]
    if default is not None:
        properties["kind"] = {**of_kind, "default": asked}
        rule = {**rule, "default": {}}
    return {
        **rule,
        "properties": properties | settings,
        "required": required,
        "additionalProperties": False,
    }
