"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

One JSON Schema (``workflow/schemas/config.schema.yaml``) and the literal ``SETTINGS`` of the
plug-ins say everything that is checked one key at a time; the functions ``_check_*`` below hold
what takes two keys or a look at the disk. All mistakes are reported at once, a line each, before
anything runs. Nothing heavy is imported, since this runs on the head node and in every job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.artifacts import remote, shards
from mamushi.artifacts.domains import CONTAMINATION, FORGET, RETAIN
from mamushi.configuration.schema import (
    Rule,
    coerced,
    filled,
    instead,
    plain,
    read,
    violations,
    without_defaults,
)
from mamushi.errors import UserError
from mamushi.registry import Plugin, plugin, plugins, tree

SCHEMA = tree() / "workflow" / "schemas" / "config.schema.yaml"
SELECTOR, DATASET, UNLEARNER = "selector", "dataset", "unlearner"
ALONE = ("embeddings_model", "encoder_model")
"""Sorts of models that give texts a vector and are no language models."""
GGUF_VERSIONS = (2, 3)
"""Those that the package gguf reads."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of weights that are not opened."""
WITHOUT_MANIFESTS = ("unlearning", "probe", "left")
TAKEN = ("retraining", "base", "contaminated", "beta0", "gold")
"""What the tables of unlearning and of what is left call models that no unlearner made."""


class ConfigError(UserError):
    """One or more mistakes in the configuration; ``lines`` has a line for each."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [" ".join(line.split()) for line in lines]
        super().__init__(self.lines[0])
        self.args = ("\n".join(self.lines),)


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with types coerced, every default filled in and paths resolved.

    ``selectors`` then has every selector that the grid, a study or ``removal.ratio`` uses, with its
    ``kind`` and all settings; ``models.*.training`` is ``training`` with the model's own changes.
    A study says what it takes from the grid, and so do ``unlearning`` and ``probe``. An environment
    variable that is not set makes its whole path null. Raises ``ConfigError``.
    """
    given = plain(config)
    rule = _composed(given)
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
    _raise(_check_names(full))
    checks = (
        *(_check_sections, _check_ranked, _check_models, _check_lengths, _check_derived),
        _check_depths,
        *(
            _check_ratio,
            _check_actions,
            _check_left,
            _check_planted,
            _check_targets,
            _check_files,
            _check_layers,
        ),
    )
    _raise(line for check in checks for line in check(full))
    return full


def _fill_unlearning(full: dict[str, Any]) -> None:
    """What ``unlearning``, ``probe`` and ``left`` leave out is the grid's, and each unlearner's
    training is the shared one with its own changes."""
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


def is_gguf(model: Mapping[str, Any]) -> bool:
    """Whether a model's source is a GGUF file, going by its name."""
    return str(model.get("source") or "").lower().endswith(".gguf")


def files(dataset: Mapping[str, Any]) -> list[str]:
    """The raw files of a completed dataset, to declare as inputs; none where no path is given."""
    return [str(path) for raw in _raw(dataset) for path in raw.found]


def _used(full: Mapping[str, Any], what: str) -> list[str]:
    """Names of the ``datasets``, ``models`` or ``selectors`` that the grid or a study asks for."""
    lists = (axes[what] for _, axes in comparisons(full))
    return list(dict.fromkeys(name for names in lists for name in names))


def datasets_used(full: Mapping[str, Any]) -> list[str]:
    """Names of the datasets that are asked for, and of those that a tiny model is pretrained on."""
    return list(dict.fromkeys([*_used(full, "datasets"), *_read(full)]))


def _read(full: Mapping[str, Any]) -> list[str]:
    """Names of the datasets that models are pretrained on."""
    return [name for model in models_used(full) for name in _pretraining(full["models"][model])]


def comparisons(full: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The grid, the studies, unlearning, its probe and what is left, each with the lists that it
    takes over."""
    yield "grid", full["grid"]
    for name, study in full["studies"].items():
        yield f"studies.{name}", {**full["grid"], **study}
    for section in WITHOUT_MANIFESTS:
        yield section, full[section]


def _raise(lines: Iterable[str]) -> None:
    mistakes = list(dict.fromkeys(lines))
    if mistakes:
        raise ConfigError(mistakes)


# The schema of one configuration ------------------------------------------------------------------


def _composed(config: Mapping[str, Any]) -> Rule:
    """The schema for this configuration: each dataset, selector and unlearner with its plug-in's
    settings, each model with the keys of its sort."""
    rule = deepcopy(read(SCHEMA))
    sections = rule["properties"]
    named = sections["datasets"]["additionalProperties"]
    sections["datasets"]["properties"] = {
        name: _with_plugin(named, DATASET, definition.get("kind"))
        for name, definition in _definitions(config, "datasets")
    }
    hub, tiny = rule["$defs"]["hub_model"], rule["$defs"]["tiny_model"]
    for model in (hub, tiny):
        training = without_defaults(model["properties"]["training"])
        training["properties"]["lora"] = without_defaults(training["properties"]["lora"])
        model["properties"]["training"] = training
    sections["models"]["additionalProperties"] = hub
    sections["models"]["properties"] = {
        name: rule["$defs"][_sort_of(definition)]
        for name, definition in _definitions(config, "models")
    }
    named = sections["selectors"]["additionalProperties"]
    sections["selectors"]["properties"] = {
        name: _with_plugin(named, SELECTOR, definition.get("kind", name))
        for name, definition in _selectors(config, rule).items()
    }
    named = sections["unlearners"]["additionalProperties"]
    training = without_defaults(named["properties"]["training"])
    named["properties"]["training"] = {**training, "default": {}}
    sections["unlearners"]["properties"] = {
        name: _with_plugin(named, UNLEARNER, definition.get("kind", name))
        for name, definition in _unlearners(config, rule).items()
    }
    return rule


def _sort_of(model: Mapping[str, Any]) -> str:
    """The definition in the schema that a model goes by."""
    for key, sort in (("family", "tiny"), ("embeddings", "embeddings"), ("kind", "encoder")):
        if key in model:
            return f"{sort}_model"
    return "hub_model"


def _definitions(config: Mapping[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The definitions in a section, as far as they have the right shape."""
    found = config.get(section)
    for name, definition in found.items() if isinstance(found, dict) else ():
        if isinstance(definition, dict):
            yield name, definition


def _selectors(config: Mapping[str, Any], rule: Rule) -> dict[str, dict[str, Any]]:
    """The given definitions of selectors, and an empty one for each known selector that is asked
    for elsewhere or that another derives from."""
    defaults = rule["properties"]["grid"]["properties"]["selectors"]["default"]
    grid, removal = config.get("grid"), config.get("removal")
    asked = [grid.get("selectors", defaults) if isinstance(grid, dict) else defaults]
    asked += [study.get("selectors") for _, study in _definitions(config, "studies")]
    asked.append(_section(config, "unlearning").get("selectors"))
    probed = rule["properties"]["probe"]["properties"]["selectors"]["default"]
    asked.append(_section(config, "probe").get("selectors", probed))
    asked.append(_section(config, "left").get("selectors"))
    ratio = rule["properties"]["removal"]["properties"]["ratio"]["default"]
    asked.append([removal.get("ratio", ratio) if isinstance(removal, dict) else ratio])
    known = plugins(SELECTOR)
    found = dict(_definitions(config, "selectors"))
    waiting = [name for names in asked if isinstance(names, list) for name in names]
    seen: set[Any] = set()
    while waiting:
        name = waiting.pop(0)
        if not isinstance(name, str) or name in seen:
            continue
        seen.add(name)
        if name in known:
            found.setdefault(name, {})
        for _, other in _others(found.get(name, {}), name):
            waiting.append(other)
    return found


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of the configuration, empty where it is missing or has another shape."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _unlearners(config: Mapping[str, Any], rule: Rule) -> dict[str, dict[str, Any]]:
    """The given definitions of unlearners, and an empty one for each known one asked for."""
    found = dict(_definitions(config, "unlearners"))
    for section in WITHOUT_MANIFESTS:
        default = rule["properties"][section]["properties"]["unlearners"]["default"]
        names = _section(config, section).get("unlearners", default)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and name in plugins(UNLEARNER):
                found.setdefault(name, {})
    return found


def _others(definition: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """The other selectors that one with this definition names, as scores to start from or as
    networks to have, each with the literal that says so."""
    kind = definition.get("kind", name)
    if kind not in plugins(SELECTOR):
        return
    chosen = plugin(SELECTOR, kind)
    for literal in ("DERIVES", "NETWORKS"):
        key = chosen.literals.get(literal)
        other = None if key is None else definition.get(key, chosen.defaults.get(key))
        if other is not None:
            yield literal, other


def _with_plugin(rule: Rule, kind: str, name: object) -> Rule:
    """``rule`` with the settings of a plug-in as further keys; unknown names fail at ``kind``."""
    known = plugins(kind)
    properties = {**rule["properties"]}
    properties["kind"] = {**properties["kind"], "enum": list(known)}
    if not isinstance(name, str) or name not in known:
        return {**rule, "properties": properties, "required": ["kind"]}
    settings = deepcopy(plugin(kind, name).settings)
    for key in plugin(kind, name).literals.get("FILES", {}):
        settings[key]["format"] = "path"
    required = list(rule.get("required", ()))
    required += [key for key, setting in settings.items() if "default" not in setting]
    composed = {
        **rule,
        "properties": {**properties, **settings},
        "required": required,
        "additionalProperties": False,
    }
    if kind in (SELECTOR, UNLEARNER):
        properties["kind"]["default"] = name
        composed["properties"]["kind"] = properties["kind"]
        composed["default"] = {}
    return composed


# Two keys at a time -------------------------------------------------------------------------------


def _check_names(full: dict[str, Any]) -> Iterator[str]:
    """Whatever is named is defined."""
    known = {
        "datasets": full["datasets"],
        "models": full["models"],
        "selectors": {**plugins(SELECTOR), **full["selectors"]},
        "unlearners": {**plugins(UNLEARNER), **full["unlearners"]},
    }

    def undefined(at: str, what: str, name: str) -> Iterator[str]:
        if name not in known[what]:
            yield f"{at}: unknown {what[:-1]} {name!r}; {instead(name, known[what])}"

    named = {"grid": full["grid"]}
    named |= {f"studies.{name}": study for name, study in full["studies"].items()}
    named |= {section: full[section] for section in WITHOUT_MANIFESTS}
    for where, axes in named.items():
        for what in known:
            for place, name in enumerate(axes.get(what, ())):
                yield from undefined(f"{where}.{what}[{place}]", what, name)
    yield from undefined("removal.ratio", "selectors", full["removal"]["ratio"])
    for name in full["unlearners"]:
        if name in TAKEN:
            yield f"unlearners.{name}: this name is taken in the tables; choose another"
    for name, definition in full["selectors"].items():
        for literal, other in _others(definition, name):
            at = f"selectors.{name}.{plugin(SELECTOR, definition['kind']).literals[literal]}"
            yield from undefined(at, "selectors", other)
            kind = full["selectors"].get(other, {"kind": "mamushi"})["kind"]
            if literal == "NETWORKS" and kind != "mamushi":
                yield f"{at}: {other!r} is of kind {kind}; networks are those of kind mamushi"
    for name, model in full["models"].items():
        if model.get("base") is not None:
            yield from undefined(f"models.{name}.base", "models", model["base"])
        for place, dataset in enumerate(_pretraining(model)):
            at = f"models.{name}.pretraining.datasets[{place}]"
            yield from undefined(at, "datasets", dataset)


def _pretraining(model: Mapping[str, Any]) -> list[str]:
    return list(model["pretraining"]["datasets"]) if "family" in model else []


def _check_depths(full: dict[str, Any]) -> Iterator[str]:
    """A selector reads no layer that is not pooled."""
    there = [*full["embedding"]["depths"], 1]
    for name, definition in full["selectors"].items():
        key = plugin(SELECTOR, definition["kind"]).literals.get("DEPTHS")
        for depth in definition[key] if key else ():
            if depth not in there:
                yield (
                    f"selectors.{name}.{key}: {depth:g} is not among embedding.depths "
                    f"({', '.join(f'{each:g}' for each in there[:-1])}); 1 is the embedding itself"
                )


def _check_sections(full: dict[str, Any]) -> Iterator[str]:
    for name, dataset in full["datasets"].items():
        total = sum(dataset["sections"].values())
        if abs(total - 1) > 1e-9:
            shares = ", ".join(f"{key} {value:g}" for key, value in dataset["sections"].items())
            at = f"datasets.{name}.sections"
            yield f"{at}: the shares ({shares or 'none'}) sum to {total:g}; they must sum to 1"


def _check_ranked(full: dict[str, Any]) -> Iterator[str]:
    """No share of a dataset is kept for a training that none of its models needs."""
    users: dict[str, set[str]] = {}
    for _, axes in comparisons(full):
        for name in axes["datasets"]:
            users.setdefault(name, set()).update(axes["models"])
    for name, models in users.items():
        dataset = full["datasets"][name]
        share = dataset["sections"].get("contamination", 0)
        ready = all(full["models"][model].get("contaminated") for model in models)
        split = plugin(DATASET, dataset["kind"]).literals.get("SPLIT", True)
        by_column = dataset.get("section") is not None
        if share and ready and split and not by_column and name not in _read(full):
            yield (
                f"datasets.{name}.sections: the contamination section, {share:.0%} of its texts, "
                f"would be neither ranked nor trained on, since {' and '.join(sorted(models))} "
                "has been contaminated before; write {inference: 1.0}, or {inference: 0.8, "
                "evaluation: 0.2} to measure as well, and 0 for contamination"
            )


def _check_models(full: dict[str, Any]) -> Iterator[str]:
    for name in models_used(full):
        model, at = full["models"][name], f"models.{name}"
        if "family" in model:
            yield from _check_tiny(at, model)
        elif "embeddings" in model:
            yield from _check_vectors(f"{at}.embeddings", model["embeddings"])
        elif "kind" in model and is_gguf(model):
            yield f"{at}.source: {model['source']!r} is not allowed; an encoder is a folder"
        else:
            yield from _check_source(at, model)


def _check_vectors(at: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Vectors are in a Parquet file, with their ids, or in an array with the ids beside it."""
    path, ids = given["path"], given["ids"]
    if path is None:
        return
    ending = Path(path).suffix.lower()
    if ending not in (".parquet", ".pq", ".npy"):
        yield f"{at}.path: {path!r} is not allowed; vectors are in a .parquet or a .npy file"
    elif (ending == ".npy") != (ids is not None):
        need = "is needed with a .npy file: a text file with an id a line"
        yield f"{at}.ids: {need if ids is None else 'is not allowed with a .parquet file'}"
    for key, file in (("path", path), ("ids", ids)):
        if file is not None and not Path(file).is_file():
            yield f"{at}.{key}: {file!r} is not allowed; no such file"


def _check_layers(full: dict[str, Any]) -> Iterator[str]:
    """No selector reads the layers of what has none."""
    for where, axes in comparisons(full):
        names = [] if where in WITHOUT_MANIFESTS else [*axes["selectors"], full["removal"]["ratio"]]
        models = [m for m in axes["models"] if _sort_of(full["models"][m]) in ALONE]
        links = dict.fromkeys(link for name in names for link in chain(full, name))
        for name, model in ((name, model) for name in links for model in models):
            key = _kind(full, name).literals.get("DEPTHS")
            if key and any(depth != 1 for depth in full["selectors"][name][key]):
                yield (
                    f"selectors.{name}.{key}: reads layers of a language model, and {where}.models "
                    f"has {model!r}, of which there are embeddings alone; write {key}: [1]"
                )


def models_used(full: Mapping[str, Any]) -> list[str]:
    """The models that are asked for, and those from which their retraining starts."""
    names = _used(full, "models")
    bases = [full["models"][name].get("base") for name in names]
    return list(dict.fromkeys([*names, *(base for base in bases if base is not None)]))


def _check_tiny(at: str, model: Mapping[str, Any]) -> Iterator[str]:
    for key, divisor in (("hidden_size", "heads"), ("heads", "key_value_heads")):
        if model[key] % model[divisor]:
            yield (
                f"{at}.{key}: {model[key]} is not allowed; it is a multiple of {divisor}, "
                f"{model[divisor]}"
            )
    longest = model["pretraining"]["max_length"]
    if longest > model["max_positions"]:
        yield (
            f"{at}.pretraining.max_length: {longest} is not allowed; it is at most "
            f"max_positions, {model['max_positions']}"
        )


def _check_source(at: str, model: Mapping[str, Any]) -> Iterator[str]:
    """A source is a GGUF file or a folder that is there, or a hub's id with a pinned revision."""
    source = model["source"]
    if source is None:
        return
    problem = None if model.get("kind") == "encoder" else source_mistake(source)
    if problem:
        yield f"{at}.source: {source!r} is not allowed; {problem}"
    if problem or is_gguf(model) or Path(source).is_dir():
        return
    hub = re.fullmatch(r"[\w.-]+/[\w.-]+", source) is not None and source[0] not in ".~"
    if not hub:
        yield (
            f"{at}.source: {source!r} is no folder; give a model's folder, a .gguf file or its id "
            "on the hub"
        )
    elif model["revision"] is None:
        yield (
            f"{at}.revision: null is not allowed, since {source!r} is no folder here; pin a hub "
            "model to a commit of 40 hexadecimal digits"
        )


def source_mistake(source: str) -> str | None:
    """What tells at a glance that a GGUF file or a folder holds no model to be opened; None where
    nothing does."""
    path = Path(source)
    if is_gguf({"source": source}):
        return _no_gguf(path)
    return _no_folder(path) if path.is_dir() else None


def _no_folder(path: Path) -> str | None:
    """What a model's folder lacks, by the names of its files."""
    names = [each.name for each in path.iterdir()]
    if "config.json" not in names:
        return "this folder holds no model (no config.json); give what save_pretrained wrote"
    pickled = [name for name in names if name.endswith(PICKLES)]
    if pickled and not any(name.endswith(".safetensors") for name in names):
        return (
            f"its weights are pickle files ({pickled[0]}), which can run code when they are "
            "opened; save it as safetensors, as save_pretrained does"
        )
    return None


def _no_gguf(path: Path) -> str | None:
    """What tells a file from a GGUF file, by its first 8 bytes; None where nothing does."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        return "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
    if len(head) < 8 or head[:4] != b"GGUF":
        return "it does not start as a GGUF file does; download it again"
    version = int.from_bytes(head[4:], "little")
    if version not in GGUF_VERSIONS:
        readable = " and ".join(map(str, GGUF_VERSIONS))
        return f"its GGUF version, {version}, cannot be read; {readable} can"
    return None


def _check_lengths(full: dict[str, Any]) -> Iterator[str]:
    """Nothing reads more tokens of a text than the token cache keeps."""
    most = full["tokens"]["max_length"]
    readers = ("training", "embedding", "evaluation", "unlearning")
    lengths = {key: full[key]["max_length"] for key in readers}
    for name in models_used(full):
        length = full["models"][name]["training"]["max_length"]
        if length != lengths["training"]:
            lengths[f"models.{name}.training"] = length
    for at, length in lengths.items():
        if length > most:
            allowed = f"it is at most tokens.max_length, {most}"
            yield f"{at}.max_length: {length} is not allowed; {allowed}"


def _check_derived(full: dict[str, Any]) -> Iterator[str]:
    """A selector that derives from another ends at one that stands alone, and one that needs the
    truth is asked for where a dataset knows it."""
    needy = set()
    for name in full["selectors"]:
        links = chain(full, name)
        if len(set(links)) < len(links):
            yield f"selectors.{name}: derives from itself ({' from '.join(links)})"
        if any(_kind(full, link).literals.get("NEEDS_TRUTH") for link in links):
            needy.add(name)
    ratio = full["removal"]["ratio"]
    for where, axes in comparisons(full):
        asked = {
            f"{where}.selectors[{place}]": name for place, name in enumerate(axes["selectors"])
        }
        if where not in WITHOUT_MANIFESTS:
            asked["removal.ratio"] = ratio
        for at, name in asked.items():
            for dataset in axes["datasets"] if name in needy else ():
                kind = full["datasets"][dataset]["kind"]
                if not plugin(DATASET, kind).literals.get("KNOWS_TRUTH"):
                    yield (
                        f"{at}: {name!r} is not allowed with the dataset {dataset!r}; it needs the "
                        f"true density ratio, which {_knowing()} data has"
                    )


def chain(full: Mapping[str, Any], name: str) -> list[str]:
    """A selector, the one that it derives from, and so on; one that comes back to itself ends."""
    links = [name]
    while len(set(links)) == len(links):
        others = dict(_others(full["selectors"][links[-1]], links[-1]))
        if "DERIVES" not in others:
            break
        links.append(others["DERIVES"])
    return links


def _kind(full: Mapping[str, Any], name: str) -> Plugin:
    return plugin(SELECTOR, full["selectors"][name]["kind"])


def _check_ratio(full: dict[str, Any]) -> Iterator[str]:
    """The selector whose scores estimate the log-density ratio scores both domains."""
    ratio = full["removal"]["ratio"]
    kinds = [_kind(full, link) for link in chain(full, ratio)]
    if not all(kind.literals.get("RETAIN_SCORES", True) for kind in kinds):
        yield (
            f"removal.ratio: {ratio!r} is not allowed, since it gives retain texts no score and so "
            "estimates no density ratio; choose a selector that does, such as mamushi"
        )


def _check_actions(full: dict[str, Any]) -> Iterator[str]:
    """Weights come from scores of both domains; what is masked, from models of both."""
    for where, axes in comparisons(full):
        for place, name in enumerate(axes["selectors"]):
            action, at = full["selectors"][name]["action"], f"{where}.selectors[{place}]: {name!r}"
            kinds = [_kind(full, link) for link in chain(full, name)]
            if action == "downweight" and not all(
                kind.literals.get("RETAIN_SCORES", True) for kind in kinds
            ):
                yield f"{at} gives retain texts no score, so no weight can follow from its scores"
            for dataset in axes["datasets"] if action == "mask" else ():
                definition = full["datasets"][dataset]
                split = plugin(DATASET, definition["kind"]).literals.get("SPLIT", True)
                share = definition["sections"].get("contamination", 0)
                if split and definition.get("section") is None and not share:
                    yield (
                        f"{at} masks by models of the contamination section, which "
                        f"datasets.{dataset}.sections does not have"
                    )
            for model in axes["models"] if action == "mask" else ():
                definition = full["models"][model]
                if definition.get("contaminated") and definition.get("base") is None:
                    yield (
                        f"{at} masks by models that are trained from the base, which "
                        f"models.{model}.base does not name"
                    )


def _check_planted(full: dict[str, Any]) -> Iterator[str]:
    """No model is pretrained on what is planted: gold starts from it, and would know it too."""
    for name in models_used(full):
        pretraining = full["models"][name].get("pretraining") or {}
        read = pretraining.get("section") == CONTAMINATION and FORGET in pretraining["domains"]
        for dataset in pretraining["datasets"] if read else ():
            if full["datasets"][dataset]["planted"] is not None:
                yield (
                    f"datasets.{dataset}.planted: {name} is pretrained on the texts among which "
                    f"these are planted; write models.{name}.pretraining.domains: [{RETAIN}]"
                )


def _check_left(full: dict[str, Any]) -> Iterator[str]:
    """What is left is asked of texts that are removed, not of what another action does to them."""
    for place, name in enumerate(full["left"]["selectors"]):
        action = full["selectors"][name]["action"]
        if action != "remove":
            yield (
                f"left.selectors[{place}]: {name!r} is not allowed, since its action is {action} "
                "and no text is removed whole"
            )


def _check_targets(full: dict[str, Any]) -> Iterator[str]:
    """What the advisor is asked for is a share, but for preservation, which is in nats."""
    for place, asked in enumerate(full["evidence"]["targets"]):
        if asked["target"] != "preservation" and asked["value"] > 1:
            at = f"evidence.targets[{place}].value"
            yield f"{at}: {asked['value']:g} is not allowed; a share is at most 1"


def _knowing() -> str:
    known = plugins(DATASET).items()
    return " or ".join(name for name, found in known if found.literals.get("KNOWS_TRUTH"))


def _check_files(full: dict[str, Any]) -> Iterator[str]:
    """Every dataset that is used has its files, where a path is given."""
    for name in datasets_used(full):
        for raw in _raw(full["datasets"][name]):
            if raw.missing:
                # Whole, however long: a path that is cut cannot be looked at.
                yield f"datasets.{name}.{raw.key}: {raw.value!r} is not allowed; {raw.missing}"
    for name, path in full["unlearning"]["lists"].items():
        # A list that the workflow writes itself may not be there yet.
        ours = path is not None and path.startswith("results/")
        if path is not None and not ours and not Path(path).is_file():
            yield f"unlearning.lists.{name}: {path!r} is not allowed; no such file"


@dataclass(frozen=True)
class _RawPath:
    """A key of a dataset that names raw files: which of them are there, what is missing."""

    key: str
    value: str
    found: list[Path]
    missing: str | None


def _raw(dataset: Mapping[str, Any]) -> Iterator[_RawPath]:
    """The keys that name raw files, as far as they have a value."""
    loader = plugin(DATASET, dataset["kind"])
    wanted: Mapping[str, list[str]] = loader.literals.get("FILES", {})
    for key, names in wanted.items():
        if dataset[key] is not None:
            sharded = bool(loader.literals.get("SHARDS"))
            yield _RawPath(key, dataset[key], *_look(dataset[key], names, sharded))


def _look(value: str, names: list[str], sharded: bool) -> tuple[list[Path], str | None]:
    """The raw files at a path, a folder with the files ``names`` or, without names, a file or where
    the loader takes one a folder of shards; and what is missing, if anything. Of an object in a
    bucket there is no file."""
    path = Path(value)
    if sharded and remote.is_remote(value):
        return [], None if shards.kind(path) else f"its ending is not known; {shards.KNOWN}"
    if sharded and (path.is_dir() or "*" in path.name):
        try:
            return shards.of(path), None
        except UserError as error:
            return [], f"{error.what}; {error.do}"
    if not names:
        return ([path], None) if path.is_file() else ([], "no such file")
    means = f"it names a folder with {', '.join(names)} (each plain or as .zip)"
    if not path.is_dir():
        return [], f"no such folder; {means}"
    found, lacks = [], []
    for name in names:
        choices = [path / name, path / f"{name}.zip"]
        there = [choice for choice in choices if choice.is_file()]
        found += there[:1]
        lacks += [] if there else [name]
    return found, f"{', '.join(lacks)} not there; {means}" if lacks else None
