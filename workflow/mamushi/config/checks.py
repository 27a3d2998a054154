"""What of a configuration takes two keys or a look at the disk to check.

Each function ``_check_*`` takes a completed configuration and yields a line for each mistake. Rooms
beside the core add checks of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mamushi.config.sections import axes_sections
from mamushi.config.sources import is_gguf, raw_paths, source_mistake
from mamushi.errors import instead
from mamushi.registry import Plugin, plugin, plugins
from mamushi.rooms import additions

Config = Mapping[str, Any]

BRACE = re.compile("[{}]")
NO_BRACE = "Snakemake takes what stands in braces for a wildcard; give it a path without"
RESERVED = ("retraining", "retrained", "base", "contaminated", "beta0", "gold")
"""What tables call models that no unlearner made."""


# What is asked for ----------------------------------------------------------------------------


def comparisons(full: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the grid, the studies and the sections with lists of their own (unlearning, its probe),
    each by its key."""
    yield "grid", full["grid"]
    for name, study in full["studies"].items():
        yield f"studies.{name}", study
    for section in axes_sections():
        yield section, full[section]


def _names(full: Config, key: str) -> list[str]:
    return list(dict.fromkeys(name for _, axes in comparisons(full) for name in axes[key]))


def models_used(full: Config) -> list[str]:
    """Return the models that are asked for, and those from which their retraining starts."""
    names = _names(full, "models")
    bases = [full["models"][name].get("base") for name in names]
    return list(dict.fromkeys([*names, *(base for base in bases if base is not None)]))


def datasets_used(full: Config) -> list[str]:
    """Return the datasets that are asked for, and those that a tiny model is pretrained on."""
    return list(dict.fromkeys([*_names(full, "datasets"), *pretraining_datasets(full)]))


def pretraining_datasets(full: Config) -> list[str]:
    """Return the datasets that the models which are asked for are pretrained on."""
    return [name for model in models_used(full) for name in _pretraining(full["models"][model])]


def _pretraining(model: Config) -> list[str]:
    return list(model["pretraining"]["datasets"]) if "family" in model else []


def selector_kind(full: Config, selector: str) -> Plugin:
    """Return the plug-in of a selector of the configuration."""
    return plugin("selector", full["selectors"][selector]["kind"])


def other_selectors(definition: Config) -> Iterator[tuple[str, str]]:
    """Yield the settings by which a selector names others, each with the name: scores to start from
    or networks to have."""
    kind = plugin("selector", definition["kind"])
    for key in (kind.derives, kind.networks):
        if key is not None:
            yield key, definition[key]


def chain(full: Config, name: str) -> list[str]:
    """Return a selector, the one that it derives from, and so on, until one comes back."""
    links = [name]
    while len(set(links)) == len(links):
        key = selector_kind(full, links[-1]).derives
        if key is None:
            break
        links.append(full["selectors"][links[-1]][key])
    return links


def of_tokens(config: Config, selector: str) -> bool:
    """Return whether a selector ranks tokens, which are masked, and not texts."""
    kind = config["selectors"].get(selector, {}).get("kind")
    return kind is not None and plugin("selector", kind).unit == "tokens"


def of_texts(config: Config, axes: Config) -> dict[str, Any]:
    """Return the axes with the selectors alone that rank texts."""
    names = [name for name in axes["selectors"] if not of_tokens(config, name)]
    return {**axes, "selectors": names}


def scores_both(full: Config, selector: str) -> bool:
    """Return whether a selector gives texts of both domains a score."""
    kinds = [selector_kind(full, link) for link in chain(full, selector)]
    return kinds[0].unit == "texts" and all(kind.retain_scores for kind in kinds)


# Names ----------------------------------------------------------------------------------------


def check_names(full: Config) -> Iterator[str]:
    """Whatever is named is defined."""
    defined = {
        "datasets": full["datasets"],
        "models": full["models"],
        "selectors": {**plugins("selector"), **full["selectors"]},
        "unlearners": {**plugins("unlearner"), **full["unlearners"]},
    }

    def undefined(at: str, section: str, name: str) -> Iterator[str]:
        if name not in defined[section]:
            yield f"{at}: unknown {section[:-1]} {name!r}; {instead(name, defined[section])}"

    for where, axes in comparisons(full):
        for section in defined:
            in_grid = full["grid"].get(section, ()) if where != "grid" else ()
            for place, name in enumerate(axes.get(section, ())):
                if name not in in_grid:
                    yield from undefined(f"{where}.{section}[{place}]", section, name)
    yield from undefined("removal.ratio", "selectors", full["removal"]["ratio"])
    for name in full["unlearners"]:
        if name in RESERVED:
            yield f"unlearners.{name}: this name is taken in the tables; choose another"
    for name, definition in full["selectors"].items():
        for key, base in other_selectors(definition):
            at = f"selectors.{name}.{key}"
            yield from undefined(at, "selectors", base)
            kind = full["selectors"].get(base, {"kind": "mamushi"})["kind"]
            if key == selector_kind(full, name).networks and kind != "mamushi":
                yield f"{at}: {base!r} is of kind {kind}; networks are those of kind mamushi"
            if key == selector_kind(full, name).derives and of_tokens(full, base):
                yield f"{at}: {base!r} ranks tokens; name a selector of texts"
    for name, model in full["models"].items():
        if model.get("base") is not None:
            yield from undefined(f"models.{name}.base", "models", model["base"])
        for place, dataset in enumerate(_pretraining(model)):
            at = f"models.{name}.pretraining.datasets[{place}]"
            yield from undefined(at, "datasets", dataset)


# Datasets -------------------------------------------------------------------------------------


def _check_sections(full: Config) -> Iterator[str]:
    for name, dataset in full["datasets"].items():
        total = sum(dataset["sections"].values())
        if abs(total - 1) > 1e-9:
            shares = ", ".join(f"{key} {value:g}" for key, value in dataset["sections"].items())
            at = f"datasets.{name}.sections"
            yield f"{at}: the shares ({shares or 'none'}) sum to {total:g}; they must sum to 1"


def _check_ranked(full: Config) -> Iterator[str]:
    """Check that a dataset has texts to rank, and keeps no share of them for a training that no
    model needs."""
    users: dict[str, set[str]] = {}
    for _, axes in comparisons(full):
        for name in axes["datasets"]:
            users.setdefault(name, set()).update(axes["models"])
    for name, names in users.items():
        dataset = full["datasets"][name]
        if not plugin("dataset", dataset["kind"]).split or dataset.get("section") is not None:
            continue
        at, share = f"datasets.{name}.sections", dataset["sections"].get("contamination", 0)
        if "inference" not in dataset["sections"]:
            yield (
                f"{at}: no inference section, whose texts are ranked; write {{inference: 1.0}}, or "
                "{inference: 0.8, evaluation: 0.2} to measure as well"
            )
        ready = all(full["models"][model].get("contaminated") for model in names)
        if share and ready and name not in pretraining_datasets(full):
            yield (
                f"{at}: the contamination section, {share:.0%} of its texts, would be neither "
                f"ranked nor trained on, since {' and '.join(sorted(names))} has been contaminated "
                "before; write {inference: 1.0}, or {inference: 0.8, evaluation: 0.2} to measure "
                "as well, and 0 for contamination"
            )


def _check_files(full: Config) -> Iterator[str]:
    """Check that every dataset that is used has its files, where a path is given."""
    for name in datasets_used(full):
        for raw in raw_paths(full["datasets"][name]):
            if BRACE.search(raw.value):
                yield not_allowed(f"datasets.{name}.{raw.key}", raw.value, NO_BRACE)
            elif raw.missing:
                yield not_allowed(f"datasets.{name}.{raw.key}", raw.value, raw.missing)
    for name, path in full["unlearning"]["lists"].items():
        # A list that the workflow writes itself may not be there yet.
        ours = path is not None and path.startswith("results/")
        if path is not None and not ours and not Path(path).is_file():
            yield not_allowed(f"unlearning.lists.{name}", path, "no such file")


def not_allowed(at: str, value: object, why: str) -> str:
    """Return the line of a value that is not allowed, which is whole, however long: a path that is
    cut cannot be looked at."""
    return f"{at}: {value!r} is not allowed; {why}"


# Models ---------------------------------------------------------------------------------------


def _check_models(full: Config) -> Iterator[str]:
    for name in models_used(full):
        model, at = full["models"][name], f"models.{name}"
        if "family" in model:
            yield from _check_tiny(at, model)
        elif "embeddings" in model:
            path = model["embeddings"]["path"]
            if path is not None and Path(path).suffix.lower() not in (".parquet", ".pq"):
                yield not_allowed(f"{at}.embeddings.path", path, "vectors are in a .parquet file")
            elif path is not None and not Path(path).is_file():
                yield not_allowed(f"{at}.embeddings.path", path, "no such file")
        elif model["source"] is not None:
            yield from _check_source(at, model)


def _check_tiny(at: str, model: Config) -> Iterator[str]:
    for key, divisor in (("hidden_size", "heads"), ("heads", "key_value_heads")):
        if model[key] % model[divisor]:
            multiple = f"it is a multiple of {divisor}, {model[divisor]}"
            yield not_allowed(f"{at}.{key}", model[key], multiple)
    width, rest = divmod(model["hidden_size"], model["heads"])
    if width % 2 and not rest:
        yield f"{at}.heads: hidden_size / heads is {width}, but rotary positions turn pairs"
    longest, most = model["pretraining"]["max_length"], model["max_positions"]
    if longest > most:
        yield not_allowed(
            f"{at}.pretraining.max_length", longest, f"it is at most max_positions, {most}"
        )


def _check_source(at: str, model: Config) -> Iterator[str]:
    """Check that a source is a GGUF file or a folder that is there, or a hub's id with a pinned
    revision."""
    source = model["source"]
    if BRACE.search(source):
        yield not_allowed(f"{at}.source", source, NO_BRACE)
    elif problem := source_mistake(source):
        yield not_allowed(f"{at}.source", source, problem)
    elif is_gguf(model) or Path(source).is_dir():
        return
    elif not re.fullmatch(r"[\w.-]+/[\w.-]+", source) or source[0] in ".~":
        yield (
            f"{at}.source: {source!r} is no folder; give a model's folder, a .gguf file or its id "
            "on the hub"
        )
    elif model["revision"] is None:
        yield (
            f"{at}.revision: null is not allowed, since {source!r} is no folder here; pin a hub "
            "model to a commit of 40 hexadecimal digits"
        )


def _check_lengths(full: Config) -> Iterator[str]:
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
            yield not_allowed(
                f"{at}.max_length", length, f"it is at most tokens.max_length, {most}"
            )


# Selectors ------------------------------------------------------------------------------------


def _check_derived(full: Config) -> Iterator[str]:
    """Check that a selector that derives from another ends at one that stands alone, and one that
    needs the truth is asked for where a dataset knows it."""
    needy = set()
    for name in full["selectors"]:
        links = chain(full, name)
        if len(set(links)) < len(links):
            yield f"selectors.{name}: derives from itself ({' from '.join(links)})"
        if any(selector_kind(full, link).needs_truth for link in links):
            needy.add(name)
    knowing = [name for name, loader in plugins("dataset").items() if loader.knows_truth]
    for where, axes in comparisons(full):
        pairs = [(f"{where}.selectors[{n}]", name) for n, name in enumerate(axes["selectors"])]
        if where not in axes_sections():
            pairs.append(("removal.ratio", full["removal"]["ratio"]))
        for at, name in pairs:
            for dataset in axes["datasets"] if name in needy else ():
                # What others take over from the grid is told of there.
                in_grid = where != "grid" and name in full["grid"]["selectors"]
                if in_grid and dataset in full["grid"]["datasets"]:
                    continue
                if full["datasets"][dataset]["kind"] not in knowing:
                    yield (
                        f"{at}: {name!r} is not allowed with the dataset {dataset!r}; it needs the "
                        f"true density ratio, which {' or '.join(knowing)} data has"
                    )


def _check_ratio(full: Config) -> Iterator[str]:
    """Check that the selector whose scores estimate the log-density ratio scores both domains."""
    ratio = full["removal"]["ratio"]
    if not scores_both(full, ratio):
        yield (
            f"removal.ratio: {ratio!r} is not allowed, since it gives retain texts no score and so "
            "estimates no density ratio; choose a selector that does, such as mamushi"
        )


def _check_tokens(full: Config) -> Iterator[str]:
    """Check that tokens are ranked for retraining alone, and where there is a tokenizer."""
    for where, axes in comparisons(full):
        for place, name in enumerate(axes["selectors"]):
            if not of_tokens(full, name):
                continue
            at = f"{where}.selectors[{place}]: {name!r}"
            if where in axes_sections():
                yield f"{at} is not allowed, since it ranks tokens and lists no text"
            for model in axes["models"]:
                if "embeddings" in full["models"][model]:
                    yield (
                        f"{at} ranks tokens, and models.{model} has embeddings made elsewhere and "
                        "no tokenizer; leave one of them out"
                    )


def _check_depths(full: Config) -> Iterator[str]:
    """Check that no selector reads a layer that is not pooled, nor the layers of what has none."""
    pooled = full["embedding"]["depths"]
    depths: dict[str, tuple[str, list[float]]] = {}
    for name, definition in full["selectors"].items():
        if key := selector_kind(full, name).depths:
            depths[name] = (f"selectors.{name}.{key}", definition[key])
    for at, layers in depths.values():
        for depth in layers:
            if depth not in (*pooled, 1):
                yield (
                    f"{at}: {depth:g} is not among embedding.depths "
                    f"({', '.join(f'{layer:g}' for layer in pooled)}); 1 is the embedding itself"
                )
    for where, axes in comparisons(full):
        if where in axes_sections():
            continue
        names = [*axes["selectors"], full["removal"]["ratio"]]
        vectors = [m for m in axes["models"] if "embeddings" in full["models"][m]]
        links = dict.fromkeys(link for name in names for link in chain(full, name))
        for link, model in ((link, model) for link in links for model in vectors):
            at, layers = depths.get(link, ("", []))
            if any(depth != 1 for depth in layers):
                yield (
                    f"{at}: reads layers of a language model, and {where}.models has {model!r}, of "
                    f"which there are embeddings alone; write {at.rpartition('.')[2]}: [1]"
                )


def _check_targets(full: Config) -> Iterator[str]:
    for place, target in enumerate(full["evidence"]["targets"]):
        if target["target"] != "preservation" and target["value"] > 1:
            at = f"evidence.targets[{place}].value"
            yield f"{at}: {target['value']:g} is not allowed; a share is at most 1"


def checks(full: Config) -> Iterator[str]:
    """Yield a line for each mistake of a configuration in which all names are defined."""
    for check in (
        *(_check_sections, _check_ranked, _check_models, _check_lengths, _check_derived),
        *(_check_depths, _check_ratio, _check_tokens, _check_files, _check_targets),
        *additions("config_checks"),
    ):
        yield from check(full)
