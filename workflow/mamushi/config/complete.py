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

from mamushi.config import models
from mamushi.config.checks import (
    WITHOUT_MANIFESTS,
    check_names,
    checks,
    of_texts,
    other_selectors,
)
from mamushi.config.schema import Rule, coerced, filled, rule_of, violations
from mamushi.config.sections import Configuration
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
    given: dict[str, Any] = coerced(config, {})
    removal = given.get("removal", {})
    if isinstance(removal, dict) and removal.get("ratio") is None:
        given["removal"] = {**removal, "ratio": own_ratio(given)}
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
        changed = model.get("training", {})
        lora = {**full["training"]["lora"], **changed.get("lora", {})}
        model["training"] = {**full["training"], **changed, "lora": lora}
    for dataset in full["datasets"].values():
        dataset["sections"] = {k: v for k, v in dataset["sections"].items() if v > 0}
    _raise(check_names(full))
    _raise(checks(full))
    return full


def own_ratio(given: Mapping[str, Any]) -> str:
    """Return the selector that estimates the ratio where the configuration names none: mamushi, or
    where the grid does without it the first of the grid's own that cross-fits texts, so that
    nothing is scored that nobody asked for."""
    default = declared()["properties"]["grid"]["properties"]["selectors"]["default"]
    names = _section(given, "grid").get("selectors", default)
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    known, definitions = plugins("selector"), _definitions(given, "selectors")
    for name in names if "mamushi" not in names else ():
        found = known.get(str(definitions.get(name, {}).get("kind", name)))
        if found and "folds" in found.settings and found.literals.get("UNIT") != "tokens":
            return name
    return "mamushi"


def _fill_unlearning(full: dict[str, Any]) -> None:
    """Take what ``unlearning``, ``probe`` and ``left`` leave out from the grid, and what a training
    of an unlearner leaves out from the shared one."""
    unlearning, probe = full["unlearning"], full["probe"]
    for axis in ("datasets", "models", "seeds"):
        unlearning.setdefault(axis, full["grid"][axis])
        full["left"].setdefault(axis, full["grid"][axis])
        probe.setdefault(axis, unlearning[axis][:1] if axis == "seeds" else unlearning[axis])
    unlearning.setdefault("selectors", of_texts(full, full["grid"])["selectors"])
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
    sections = dict(declared()["properties"])
    found = {
        "dataset": _definitions(config, "datasets"),
        "selector": _selectors(config),
        "unlearner": _unlearners(config),
    }
    for kind, definitions in found.items():
        section = sections[f"{kind}s"]
        each = section["additionalProperties"]
        rules = {name: _with_plugin(each, kind, name, definitions[name]) for name in definitions}
        sections[f"{kind}s"] = {**section, "properties": rules}
    given = _definitions(config, "models")
    sections["models"] = {
        **sections["models"],
        "properties": {name: rule_of(models.sort_of(model)) for name, model in given.items()},
        "additionalProperties": rule_of(models.HubModel),
    }
    return {**declared(), "properties": sections}


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
    lists = [study.get(what) for study in _definitions(config, "studies").values()]
    for name in ("grid", *WITHOUT_MANIFESTS):
        setting = declared()["properties"][name]["properties"].get(what, {})
        lists.append(_section(config, name).get(what, setting.get("default")))
    for names in lists:
        yield from (n for n in names if isinstance(n, str)) if isinstance(names, list) else ()


def _selectors(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the given definitions of selectors, and an empty one for each known selector that is
    asked for elsewhere or that another derives from."""
    found = _definitions(config, "selectors")
    waiting: list[Any] = [*_asked(config, "selectors")]
    waiting.append(_section(config, "removal").get("ratio"))
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
    asked: dict[str, dict[str, Any]] = {
        name: {} for name in _asked(config, "unlearners") if name in plugins("unlearner")
    }
    return asked | _definitions(config, "unlearners")


def _with_plugin(rule: Rule, kind: str, name: str, definition: Mapping[str, Any]) -> Rule:
    """Return ``rule`` with the settings of a definition's plug-in as further keys; an unknown one
    fails at ``kind``."""
    default = None if kind == "dataset" else name
    asked = definition.get("kind", default)
    of_kind = {**rule["properties"]["kind"], "enum": list(plugins(kind))}
    properties = {**rule["properties"], "kind": of_kind}
    if not isinstance(asked, str) or asked not in plugins(kind):
        return {**rule, "properties": properties, "required": ["kind"]}
    settings = deepcopy(dict(plugin(kind, asked).settings))
    for key in plugin(kind, asked).literals.get("FILES", {}):
        settings[key]["format"] = "path"
    required = [*rule["required"], *(k for k, each in settings.items() if "default" not in each)]
    if default is not None:
        properties["kind"] = {**of_kind, "default": asked}
        rule = {**rule, "default": {}}
    composed = {"properties": properties | settings, "required": required}
    return {**rule, **composed, "additionalProperties": False}
