"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

The declaration in ``sections`` and the ``Settings`` of the plug-ins say everything that is checked
one section at a time; the rest is below, and in rooms beside the core. Mistakes are told together,
a line each, before anything runs. It imports nothing heavy: every Snakefile that is read calls it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import create_model

from mamushi.config import sections
from mamushi.config.kinds import Config, ConfigError, Section, read_section, refuse
from mamushi.config.selectors import derives, kind_of, of_texts, scores_both
from mamushi.config.sources import raw_paths, vector_shards
from mamushi.errors import UserError, choices
from mamushi.io.copies import is_remote
from mamushi.io.model_files import source_mistake
from mamushi.io.tabular import no_file
from mamushi.registry import additions, plugin, plugins

RESERVED = ("retraining", "retrained", "base", "contaminated", "beta0", "gold")
"""What tables call models that no unlearner made."""


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
            raise ConfigError([f"{at}.kind: {of!r} is not allowed; {choices(of, plugins(kind))}"])
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


# Checks of two keys, or of the disk ---------------------------------------------------------------


def comparisons(full: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the grid, the studies and the sections with lists of their own (unlearning, its probe),
    each by its key."""
    yield "grid", full["grid"]
    for name, study in full["studies"].items():
        yield f"studies.{name}", study
    for section in sections.axes_sections():
        yield section, full[section]


def models_used(full: Config) -> list[str]:
    """Return the models that are asked for, and those from which their retraining starts."""
    names = [name for _, axes in comparisons(full) for name in axes["models"]]
    bases = [full["models"][name].get("base") for name in names]
    return list(dict.fromkeys([*names, *filter(None, bases)]))


def datasets_used(full: Config) -> list[str]:
    """Return the datasets that are asked for, and those that a tiny model is pretrained on."""
    names = [name for _, axes in comparisons(full) for name in axes["datasets"]]
    return list(dict.fromkeys([*names, *_pretraining_datasets(full)]))


def _pretraining_datasets(full: Config) -> list[str]:
    models = [full["models"][name] for name in models_used(full)]
    return [name for model in models for name in model.get("pretraining", {}).get("datasets", ())]


def check_names(full: Config) -> Iterator[str]:
    """Yield a line for each name that nothing defines, at the key where it stands first."""
    defined = {
        "datasets": full["datasets"],
        "models": full["models"],
        "selectors": {**plugins("selector"), **full["selectors"]},
        "unlearners": {**plugins("unlearner"), **full["unlearners"]},
    }
    unknown: dict[tuple[str, str], str] = {}
    for at, section, names in _names_used(full):
        for name in names:
            if name not in defined[section]:
                unknown.setdefault((section, name), at)
    for (section, name), at in unknown.items():
        yield f"{at}: unknown {section[:-1]} {name!r}; {choices(name, defined[section])}"
    for name in full["unlearners"].keys() & {*RESERVED}:
        yield f"unlearners.{name}: this name is taken in the tables; choose another"


def _names_used(full: Config) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a key, the section that defines the names that it has, and these."""
    for where, axes in comparisons(full):
        for section in ("datasets", "models", "selectors", "unlearners"):
            yield f"{where}.{section}", section, axes.get(section, [])
    yield "removal.ratio", "selectors", [full["removal"]["ratio"]]
    yield "evidence.compared", "selectors", full["evidence"]["compared"]
    for name in full["selectors"]:
        if (base := derives(full, name)) is not None:
            yield f"selectors.{name}.{kind_of(full, name).derives}", "selectors", [base]
    for name, model in full["models"].items():
        at, pretraining = f"models.{name}", model.get("pretraining", {})
        yield f"{at}.base", "models", [model["base"]] if model.get("base") else []
        yield f"{at}.pretraining.datasets", "datasets", pretraining.get("datasets", [])


def _check_ranked(full: Config) -> Iterator[str]:
    """Check that a dataset has texts to rank, and keeps no share of them for a training that no
    model needs."""
    trained_on = {*_pretraining_datasets(full)}
    for _, axes in comparisons(full):
        if not all(full["models"][name].get("contaminated") for name in axes["models"]):
            trained_on |= {*axes["datasets"]}
    for name in {name: None for _, axes in comparisons(full) for name in axes["datasets"]}:
        dataset = full["datasets"][name]
        if not plugin("dataset", dataset["kind"]).split or dataset.get("section") is not None:
            continue
        at, sections = f"datasets.{name}.sections", dataset["sections"]
        do = "write {inference: 1.0}, or {inference: 0.8, evaluation: 0.2} to measure as well"
        if "inference" not in sections:
            yield f"{at}: no inference section, whose texts are ranked; {do}"
        if sections.get("contamination") and name not in trained_on:
            yield f"{at}: no model is trained on the contamination section, nor is it ranked; {do}"


def _check_files(full: Config) -> Iterator[str]:
    """Check that what is used has its files, where a path is given."""
    lists = full["unlearning"]["lists"].items()
    wanted = {f"unlearning.lists.{name}": [Path(path)] for name, path in lists if path}
    for name in datasets_used(full):
        try:
            raw = raw_paths(full["datasets"][name])
            wanted |= {f"datasets.{name}.{key}": files for key, files in raw.items()}
        except UserError as error:
            yield f"datasets.{name}: {error}"
    for name in models_used(full):
        path = full["models"][name].get("embeddings", {}).get("path")
        if path and not is_remote(path):
            wanted[f"models.{name}.embeddings.path"] = vector_shards(path) or [Path(path, "*")]
    for at, files in wanted.items():
        for file in files:
            # What the workflow makes itself, or fetches, may not be there yet.
            if not file.is_file() and file.parts[0] != "results":
                yield not_allowed(at, str(file), no_file(file))


def not_allowed(at: str, value: object, why: str) -> str:
    """Return the line of a value that is not allowed."""
    return f"{at}: {value!r} is not allowed; {why}"


def _check_sources(full: Config) -> Iterator[str]:
    """Check that a source is a folder that is there, or a hub's id with a pinned revision."""
    for name in models_used(full):
        source, at = full["models"][name].get("source"), f"models.{name}"
        if source and (problem := source_mistake(source)):
            yield not_allowed(f"{at}.source", source, problem)
        elif source and not Path(source).is_dir():
            if not re.fullmatch(r"\w[\w.-]*/[\w.-]+", source):
                yield not_allowed(f"{at}.source", source, "it is no folder, and no id on the hub")
            elif full["models"][name]["revision"] is None:
                why = f"{source!r} is no folder here; pin a hub model to a commit of 40 digits"
                yield not_allowed(f"{at}.revision", None, why)


def _check_lengths(full: Config) -> Iterator[str]:
    """Check that nothing reads more tokens of a text than the token cache keeps."""
    readers = {key: full[key] for key in ("training", "embedding", "evaluation", "unlearning")}
    models = {name: full["models"][name] for name in models_used(full)}
    readers |= {f"models.{n}.training": m["training"] for n, m in models.items() if "training" in m}
    for at, reader in readers.items():
        if reader["max_length"] > (most := full["tokens"]["max_length"]):
            words = f"it is at most tokens.max_length, {most}"
            yield not_allowed(f"{at}.max_length", reader["max_length"], words)


def _check_ratio(full: Config) -> Iterator[str]:
    """Check that the selector of the ratio scores both domains."""
    if not scores_both(full, ratio := full["removal"]["ratio"]):
        why = "it scores no retain texts; choose a selector that does, such as mamushi"
        yield not_allowed("removal.ratio", ratio, why)


def checks(full: Config) -> Iterator[str]:
    """Yield a line for each mistake of a configuration in which all names are defined."""
    ours = (_check_ranked, _check_sources, _check_lengths, _check_ratio, _check_files)
    for check in (*ours, *(added.check for added in additions("config"))):
        yield from check(full)
