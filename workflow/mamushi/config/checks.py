"""What of a configuration takes two keys or a look at the disk to check.

Each function ``_check_*`` takes a completed configuration and yields a line for each mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mamushi.config.schema import instead
from mamushi.config.sources import is_gguf, raw_paths, source_mistake, unlabelled
from mamushi.io.domains import CONTAMINATION, FORGET, RETAIN
from mamushi.registry import Plugin, plugin, plugins

Config = Mapping[str, Any]

WITHOUT_MANIFESTS = ("unlearning", "probe", "left")
"""Sections that have lists of their own, beside the grid and the studies."""
BRACE = re.compile("[{}]")
NO_BRACE = "Snakemake takes what stands in braces for a wildcard; give it a path without"
RESERVED = ("retraining", "retrained", "base", "contaminated", "beta0", "gold")
"""What tables call models that no unlearner made."""


# What is asked for ----------------------------------------------------------------------------


def comparisons(full: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the grid, the studies, unlearning, its probe and what is left, each by its key and with
    the lists that it takes over."""
    yield "grid", full["grid"]
    for name, study in full["studies"].items():
        yield f"studies.{name}", {**full["grid"], **study}
    for section in WITHOUT_MANIFESTS:
        yield section, full[section]


def _used(full: Config, what: str) -> list[str]:
    lists = (axes[what] for _, axes in comparisons(full))
    return list(dict.fromkeys(name for names in lists for name in names))


def models_used(full: Config) -> list[str]:
    """Return the models that are asked for, and those from which their retraining starts."""
    names = _used(full, "models")
    bases = [full["models"][name].get("base") for name in names]
    return list(dict.fromkeys([*names, *(base for base in bases if base is not None)]))


def datasets_used(full: Config) -> list[str]:
    """Return the datasets that are asked for, and those that a tiny model is pretrained on."""
    return list(dict.fromkeys([*_used(full, "datasets"), *_read(full)]))


def _read(full: Config) -> list[str]:
    return [name for model in models_used(full) for name in _pretraining(full["models"][model])]


def _pretraining(model: Config) -> list[str]:
    return list(model["pretraining"]["datasets"]) if "family" in model else []


def other_selectors(definition: Config, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the other selectors that one names, as scores to start from or as networks to have,
    each with the literal that says so."""
    kind = definition.get("kind", name)
    if kind not in plugins("selector"):
        return
    selector = plugin("selector", kind)
    for literal in ("DERIVES", "NETWORKS"):
        key = selector.literals.get(literal)
        other = None if key is None else definition.get(key, selector.defaults.get(key))
        if other is not None:
            yield literal, other


def chain(full: Config, name: str) -> list[str]:
    """Return a selector, the one that it derives from, and so on, until one comes back."""
    links = [name]
    while len(set(links)) == len(links):
        others = dict(other_selectors(full["selectors"][links[-1]], links[-1]))
        if "DERIVES" not in others:
            break
        links.append(others["DERIVES"])
    return links


def _kinds(full: Config, name: str) -> list[Plugin]:
    """Return the plug-ins of a selector and of those that it derives from."""
    return [plugin("selector", full["selectors"][link]["kind"]) for link in chain(full, name)]


def of_tokens(config: Config, selector: str) -> bool:
    """Return whether a selector ranks tokens, which are masked, and not texts."""
    kind = config["selectors"].get(selector, {}).get("kind")
    return kind is not None and plugin("selector", kind).literals.get("UNIT") == "tokens"


def of_texts(config: Config, axes: Config) -> dict[str, Any]:
    """Return the axes with the selectors alone that rank texts."""
    own = [each for each in axes["selectors"] if not of_tokens(config, each)]
    return {**axes, "selectors": own}


def _scores_both(full: Config, name: str) -> bool:
    return all(kind.literals.get("RETAIN_SCORES", True) for kind in _kinds(full, name))


# Names ----------------------------------------------------------------------------------------


def check_names(full: Config) -> Iterator[str]:
    """Whatever is named is defined."""
    known = {
        "datasets": full["datasets"],
        "models": full["models"],
        "selectors": {**plugins("selector"), **full["selectors"]},
        "unlearners": {**plugins("unlearner"), **full["unlearners"]},
    }

    def undefined(at: str, what: str, name: str) -> Iterator[str]:
        if name not in known[what]:
            yield f"{at}: unknown {what[:-1]} {name!r}; {instead(name, known[what])}"

    named = {"grid": full["grid"]}
    named |= {f"studies.{name}": study for name, study in full["studies"].items()}
    named |= {section: full[section] for section in WITHOUT_MANIFESTS}
    for where, axes in named.items():
        for what in known:
            # What others take over from the grid is told of there.
            in_grid = full["grid"].get(what, ()) if where != "grid" else ()
            for place, name in enumerate(axes.get(what, ())):
                if name in in_grid:
                    continue
                yield from undefined(f"{where}.{what}[{place}]", what, name)
    yield from undefined("removal.ratio", "selectors", full["removal"]["ratio"])
    for name in full["unlearners"]:
        if name in RESERVED:
            yield f"unlearners.{name}: this name is taken in the tables; choose another"
    for name, definition in full["selectors"].items():
        for literal, other in other_selectors(definition, name):
            at = f"selectors.{name}.{plugin('selector', definition['kind']).literals[literal]}"
            yield from undefined(at, "selectors", other)
            kind = full["selectors"].get(other, {"kind": "mamushi"})["kind"]
            if literal == "NETWORKS" and kind != "mamushi":
                yield f"{at}: {other!r} is of kind {kind}; networks are those of kind mamushi"
            if literal == "DERIVES" and of_tokens(full, other):
                yield f"{at}: {other!r} ranks tokens; name a selector of texts"
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


def _contamination(dataset: Config) -> float | None:
    """Return the share of a contamination section, None where rows come with their sections."""
    split = plugin("dataset", dataset["kind"]).literals.get("SPLIT", True)
    ready = not split or dataset.get("section") is not None
    return None if ready else float(dataset["sections"].get("contamination", 0))


def _check_ranked(full: Config) -> Iterator[str]:
    """Check that a dataset has texts to rank, and keeps no share of them for a training that no
    model needs."""
    users: dict[str, set[str]] = {}
    for _, axes in comparisons(full):
        for name in axes["datasets"]:
            users.setdefault(name, set()).update(axes["models"])
    for name, names in users.items():
        share = _contamination(full["datasets"][name])
        if share is not None and "inference" not in full["datasets"][name]["sections"]:
            yield (
                f"datasets.{name}.sections: no inference section, whose texts are ranked; write "
                "{inference: 1.0}, or {inference: 0.8, evaluation: 0.2} to measure as well"
            )
        ready = all(full["models"][model].get("contaminated") for model in names)
        if share and ready and name not in _read(full):
            yield (
                f"datasets.{name}.sections: the contamination section, {share:.0%} of its texts, "
                f"would be neither ranked nor trained on, since {' and '.join(sorted(names))} "
                "has been contaminated before; write {inference: 1.0}, or {inference: 0.8, "
                "evaluation: 0.2} to measure as well, and 0 for contamination"
            )


def _check_files(full: Config) -> Iterator[str]:
    """Check that every dataset that is used has its files, where a path is given."""
    for name in datasets_used(full):
        for raw in raw_paths(full["datasets"][name]):
            if BRACE.search(raw.value):
                yield _refused(f"datasets.{name}.{raw.key}", raw.value, NO_BRACE)
            elif raw.missing:
                yield _refused(f"datasets.{name}.{raw.key}", raw.value, raw.missing)
    for name, path in full["unlearning"]["lists"].items():
        # A list that the workflow writes itself may not be there yet.
        ours = path is not None and path.startswith("results/")
        if path is not None and not ours and not Path(path).is_file():
            yield _refused(f"unlearning.lists.{name}", path, "no such file")


def _refused(at: str, value: object, why: str) -> str:
    # Whole, however long: a path that is cut cannot be looked at.
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
                yield _refused(f"{at}.embeddings.path", path, "vectors are in a .parquet file")
            elif path is not None and not Path(path).is_file():
                yield _refused(f"{at}.embeddings.path", path, "no such file")
        elif model["source"] is not None:
            yield from _check_source(at, model)


def _check_tiny(at: str, model: Config) -> Iterator[str]:
    for key, divisor in (("hidden_size", "heads"), ("heads", "key_value_heads")):
        if model[key] % model[divisor]:
            multiple = f"it is a multiple of {divisor}, {model[divisor]}"
            yield _refused(f"{at}.{key}", model[key], multiple)
    width, rest = divmod(model["hidden_size"], model["heads"])
    if width % 2 and not rest:
        yield f"{at}.heads: hidden_size / heads is {width}, but rotary positions turn pairs"
    longest, most = model["pretraining"]["max_length"], model["max_positions"]
    if longest > most:
        allowed = f"it is at most max_positions, {most}"
        yield _refused(f"{at}.pretraining.max_length", longest, allowed)


def _check_source(at: str, model: Config) -> Iterator[str]:
    """Check that a source is a GGUF file or a folder that is there, or a hub's id with a pinned
    revision."""
    source = model["source"]
    if BRACE.search(source):
        yield _refused(f"{at}.source", source, NO_BRACE)
    elif problem := source_mistake(source):
        yield _refused(f"{at}.source", source, problem)
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
            yield _refused(f"{at}.max_length", length, f"it is at most tokens.max_length, {most}")


# Selectors ------------------------------------------------------------------------------------


def _check_derived(full: Config) -> Iterator[str]:
    """Check that a selector that derives from another ends at one that stands alone, and one that
    needs the truth is asked for where a dataset knows it."""
    needy = set()
    for name in full["selectors"]:
        links = chain(full, name)
        if len(set(links)) < len(links):
            yield f"selectors.{name}: derives from itself ({' from '.join(links)})"
        if any(kind.literals.get("NEEDS_TRUTH") for kind in _kinds(full, name)):
            needy.add(name)
    loaders = plugins("dataset")
    knowing = [name for name, found in loaders.items() if found.literals.get("KNOWS_TRUTH")]
    for where, axes in comparisons(full):
        asked = {f"{where}.selectors[{n}]": name for n, name in enumerate(axes["selectors"])}
        if where not in WITHOUT_MANIFESTS:
            asked["removal.ratio"] = full["removal"]["ratio"]
        for at, name in asked.items():
            for dataset in axes["datasets"] if name in needy else ():
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
    if of_tokens(full, ratio) or not _scores_both(full, ratio):
        yield (
            f"removal.ratio: {ratio!r} is not allowed, since it gives retain texts no score and so "
            "estimates no density ratio; choose a selector that does, such as mamushi"
        )


def _check_unlabelled(full: Config) -> Iterator[str]:
    """Check what a corpus that nobody labelled takes: rankings of texts with a score of each."""
    corpora = [name for name, each in full["datasets"].items() if unlabelled(each)]
    for name in corpora:
        if full["datasets"][name].get("retain") is not None:
            yield f"datasets.{name}.retain: is not allowed beside examples; use forget.unlike"
    for where, axes in comparisons(full):
        # What is measured against gold is refused as a whole, where it is asked for.
        measured = where in WITHOUT_MANIFESTS
        here = [name for name in corpora if name in axes["datasets"] and not measured]
        for place, name in enumerate(axes["selectors"] if here else ()):
            # What others take over from the grid is told of there.
            in_grid = where != "grid" and name in full["grid"]["selectors"]
            if not in_grid and (of_tokens(full, name) or not _scores_both(full, name)):
                yield (
                    f"{where}.selectors[{place}]: {name!r} is not allowed with the dataset "
                    f"{here[0]!r}, in which nobody marked the domain; name one that scores every "
                    "text, such as mamushi_words"
                )


def _check_tokens(full: Config) -> Iterator[str]:
    """Check that tokens are ranked for retraining alone, and read where there is a tokenizer."""
    for where, axes in comparisons(full):
        for place, name in enumerate(axes["selectors"]):
            at, ranks = f"{where}.selectors[{place}]: {name!r}", of_tokens(full, name)
            if not (ranks or _reads_tokens(full, name)):
                continue
            if ranks and where in WITHOUT_MANIFESTS:
                yield f"{at} is not allowed, since it ranks tokens and lists no text"
            for model in axes["models"]:
                if "embeddings" in full["models"][model]:
                    yield (
                        f"{at} {'ranks' if ranks else 'reads'} tokens, and models.{model} has "
                        "embeddings made elsewhere and no tokenizer; leave one of them out"
                    )


def _reads_tokens(full: Config, selector: str) -> bool:
    kind = full["selectors"][selector]["kind"]
    return bool(plugin("selector", kind).literals.get("READS_TOKENS"))


def _check_depths(full: Config) -> Iterator[str]:
    """Check that no selector reads a layer that is not pooled, nor the layers of what has none."""
    there = full["embedding"]["depths"]
    depths: dict[str, tuple[str, list[float]]] = {}
    for name, definition in full["selectors"].items():
        key = plugin("selector", definition["kind"]).literals.get("DEPTHS")
        if key:
            depths[name] = (f"selectors.{name}.{key}", definition[key])
    for at, asked in depths.values():
        for depth in asked:
            if depth not in (*there, 1):
                yield (
                    f"{at}: {depth:g} is not among embedding.depths "
                    f"({', '.join(f'{each:g}' for each in there)}); 1 is the embedding itself"
                )
    for where, axes in comparisons(full):
        names = [] if where in WITHOUT_MANIFESTS else [*axes["selectors"], full["removal"]["ratio"]]
        vectors = [m for m in axes["models"] if "embeddings" in full["models"][m]]
        links = dict.fromkeys(link for name in names for link in chain(full, name))
        for link, model in ((link, model) for link in links for model in vectors):
            at, asked = depths.get(link, ("", []))
            if any(depth != 1 for depth in asked):
                yield (
                    f"{at}: reads layers of a language model, and {where}.models has {model!r}, of "
                    f"which there are embeddings alone; write {at.rpartition('.')[2]}: [1]"
                )


def _check_planted(full: Config) -> Iterator[str]:
    # Gold starts from the pretrained model, and would know what is planted.
    for name in models_used(full):
        pretraining = full["models"][name].get("pretraining") or {}
        read = pretraining.get("section") == CONTAMINATION and FORGET in pretraining["domains"]
        for dataset in pretraining["datasets"] if read else ():
            if full["datasets"][dataset]["planted"] is not None:
                yield (
                    f"datasets.{dataset}.planted: {name} is pretrained on the texts among which "
                    f"these are planted; write models.{name}.pretraining.domains: [{RETAIN}]"
                )


def _check_windows(full: Config) -> Iterator[str]:
    for name in datasets_used(full):
        dataset, at = full["datasets"][name], f"datasets.{name}.windows"
        if (windows := dataset["windows"]) is None:
            continue
        if dataset["kind"] != "table":
            yield f"{at}: the documents of a table are divided; leave windows out"
        if dataset.get("answers") and windows["action"] == "remove" and not unlabelled(dataset):
            yield f"{at}.action: 'remove' is not allowed with answers, which are of windows; cut"
        if windows["overlap"] >= windows["words"]:
            shorter = f"it is below words, {windows['words']}"
            yield _refused(f"{at}.overlap", windows["overlap"], shorter)


def _check_targets(full: Config) -> Iterator[str]:
    for place, asked in enumerate(full["evidence"]["targets"]):
        if asked["target"] != "preservation" and asked["value"] > 1:
            at = f"evidence.targets[{place}].value"
            yield f"{at}: {asked['value']:g} is not allowed; a share is at most 1"


def checks(full: Config) -> Iterator[str]:
    """Yield a line for each mistake of a configuration in which all names are defined."""
    for check in (
        *(_check_sections, _check_ranked, _check_models, _check_lengths, _check_derived),
        *(_check_depths, _check_ratio, _check_tokens, _check_files, _check_unlabelled),
        *(_check_planted, _check_windows, _check_targets),
    ):
        yield from check(full)
