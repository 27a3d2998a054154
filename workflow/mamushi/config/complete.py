"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

The declaration in ``sections`` and the ``Settings`` of the plug-ins say everything that is checked
one section at a time; the rest is below, and in rooms beside the core. Mistakes are told together,
a line each, before anything runs. It imports nothing heavy: every Snakefile that is read calls it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import create_model

from mamushi.config import sections
from mamushi.config.kinds import Config, Section, read_section, refuse
from mamushi.config.selectors import grid_selectors, kind_of, parent_of, scores_both, text_axes
from mamushi.config.sources import files
from mamushi.errors import choices
from mamushi.io.tabular import why_not_a_file
from mamushi.registry import additions, plugin, plugins

NAMED = ("datasets", "models", "selectors", "unlearners")
"""Sections of definitions, and lists of their names in other sections."""


def complete(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with types coerced, every default filled in and paths resolved.

    ``selectors`` and ``unlearners`` then have every one that there is, with its ``kind`` and all
    settings; ``models.*.training`` is ``training`` with the model's own changes. Studies,
    ``unlearning`` and ``probe`` say what they take from the grid. An environment variable that is
    not set makes its whole path null. Raises ``UserError`` with a line for each mistake.
    """
    config = read_section(sections.with_rooms(sections.Configuration), config)
    # Whoever read the files has laid them over each other.
    del config["extends"]
    config["studies"] = {k: v for k, v in (config["studies"] or {}).items() if v is not None}
    for section in ("selectors", "unlearners"):
        config[section] = {**{name: {} for name in plugins(section[:-1])}, **config[section]}
    for section in NAMED:
        for name in config[section]:
            config[section][name] = _read_definition(config, section, name)
    config |= {section: _name_places(config[section]) for section in ("datasets", "models")}
    refuse(_check_names(config))
    _fill_lists(config)
    rooms = [added.check for added in additions("config")]
    refuse(line for check in (_check_values, _check_files, *rooms) for line in check(config))
    return config


def _read_definition(config: Config, section: str, name: str) -> dict[str, Any]:
    """Return a definition with all its keys. Its training is that of all with its changes, and its
    plug-in has its name unless it says another ``kind``."""
    at, kind, definition = f"{section}.{name}", section[:-1], config[section][name]
    if kind == "model":
        keys = sections.section_of(definition)
    else:
        config, definition = config["unlearning"], {"kind": name, **definition}
        if (of := definition["kind"]) not in [*plugins(kind)]:
            refuse([f"{at}.kind: {of!r} is not allowed; {choices(of, plugins(kind))}"])
        keys = plugin_section(kind, of)
    if "training" in keys.model_fields:
        definition = deep_merge({"training": config["training"]}, definition)
    return read_section(keys, definition, at)


def _name_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _name_places(inner) for key, inner in value.items()}
    for added in additions("config") if isinstance(value, str) else ():
        value = added.name(value)
    return value


def deep_merge(config: Config, changes: Config) -> dict[str, Any]:
    """Return ``config`` with ``changes`` over it, merged key by key also in nested mappings."""
    merged = {**config, **changes}
    for key, change in changes.items():
        if isinstance(change, dict) and isinstance(config.get(key), dict):
            merged[key] = deep_merge(config[key], change)
    return merged


@cache
def plugin_section(kind: str, name: str) -> type[Section]:
    """Return the keys of a definition of a plug-in: those of its kind, and its settings."""
    of_kind = {"selector": sections.Selector, "unlearner": sections.Unlearner}.get(
        kind, sections.with_rooms(sections.Dataset, "datasets")
    )
    return create_model(name, __base__=(of_kind, plugin(kind, name).section))


def _fill_lists(config: dict[str, Any]) -> None:
    """Choose the selector of the ratio if none is named: mamushi, or the grid's first that
    cross-fits. Take lists that studies and other sections leave out from the grid."""
    unlearning, grid, chosen = config["unlearning"], config["grid"], config["removal"]
    fitted = [name for name in grid_selectors(config) if "folds" in config["selectors"][name]]
    usual = min(fitted, key=lambda name: name != "mamushi", default="mamushi")
    chosen["ratio"] = chosen["ratio"] or usual

    def lay_under(axes: dict[str, Any], lists: Mapping[str, Any]) -> None:
        axes |= {key: lists[key] for key in axes if axes[key] is None and key in lists}

    lay_under(unlearning, text_axes(config, grid))
    lay_under(config["probe"], unlearning | {"seeds": unlearning["seeds"][:1]})
    for _, axes in comparisons(config):
        lay_under(axes, grid)
    unlearning["max_length"] = unlearning["max_length"] or config["tokens"]["max_length"]


def comparisons(config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the grid, the studies and the sections with lists of their own (unlearning, its
    probe), each by its key."""
    studies = {f"studies.{name}": study for name, study in config["studies"].items()}
    lists = {"datasets", "models", "seeds"}
    of_own = {k: v for k, v in config.items() if isinstance(v, dict) and lists <= v.keys()}
    return [*{"grid": config["grid"], **studies, **of_own}.items()]


def names_in_use(config: Config, section: str) -> list[str]:
    """Return the names of ``models`` that are asked for and those their retraining starts from, or
    of ``datasets`` that are and those that such models are pretrained on."""
    names = [name for _, axes in comparisons(config) for name in axes[section]]
    if section == "models":
        names += filter(None, [config["models"][name].get("base") for name in names])
    else:
        models = [config["models"][name] for name in names_in_use(config, "models")]
        names += [name for m in models for name in m.get("pretraining", {}).get("datasets", ())]
    return [*dict.fromkeys(names)]


def _check_names(config: Config) -> Iterator[str]:
    """Yield a line for each name that nothing defines."""
    names = [(f"{at}.{k}", k, axes.get(k) or ()) for at, axes in comparisons(config) for k in NAMED]
    names += [("removal.ratio", "selectors", [config["removal"]["ratio"]])]
    names += [("evidence.compared", "selectors", config["evidence"]["compared"])]
    for name in config["selectors"]:
        at = f"selectors.{name}.{kind_of(config, name).derives}"
        names += [(at, "selectors", [parent_of(config, name)])]
    for name, model in config["models"].items():
        pretrained = model.get("pretraining", {}).get("datasets", ())
        names += [(f"models.{name}.base", "models", [model.get("base")])]
        names += [(f"models.{name}.pretraining.datasets", "datasets", pretrained)]
    for at, section, listed in names:
        for name in listed:
            if name not in (None, *config[section]):
                yield f"{at}: unknown {section[:-1]} {name!r}; {choices(name, config[section])}"


def _check_values(config: Config) -> Iterator[str]:
    """Check that there are models to be found, tokens enough in the cache, and a selector for the
    ratio that scores both domains."""
    for name in names_in_use(config, "models"):
        model = config["models"][name]
        source = model.get("source")
        is_on_hub = re.fullmatch(r"\w[\w.-]*/[\w.-]+", source or "") and model["revision"]
        if source and not (os.path.isdir(source) or is_on_hub):
            do = "give a folder that is here, or an id on the hub with its commit as `revision`"
            yield f"models.{name}.source: {source!r} is not allowed; {do}"
    most = config["tokens"]["max_length"]
    for reader in ("training", "embedding", "evaluation", "unlearning"):
        if (length := config[reader]["max_length"]) > most:
            yield f"{reader}.max_length: {length} is above tokens.max_length, {most}"
    if not scores_both(config, ratio := config["removal"]["ratio"]):
        do = "choose a selector that does, such as mamushi"
        yield f"removal.ratio: {ratio!r} is not allowed; it scores no retain texts; {do}"


def _check_files(config: Config) -> Iterator[str]:
    """Check that the datasets that are used have their files, where a path is given."""
    for name in names_in_use(config, "datasets"):
        for path in map(Path, files(config["datasets"][name])):
            # What the workflow fetches may not be there yet.
            if path.parts[0] != "results" and not path.is_file():
                yield f"datasets.{name}: {str(path)!r} is not allowed; {why_not_a_file(path)}"
