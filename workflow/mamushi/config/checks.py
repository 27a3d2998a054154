"""What of a configuration takes two keys or a look at the disk to check.

Each function ``_check_*`` takes a completed configuration and yields a line for each mistake. Rooms
beside the core add checks of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mamushi.config.kinds import Config
from mamushi.config.sections import axes_sections
from mamushi.config.selectors import (
    base_selectors,
    chain,
    kind_of,
    of_tokens,
    reads_layers,
    scores_both,
)
from mamushi.config.sources import raw_paths, vector_shards
from mamushi.errors import instead
from mamushi.io.copies import is_remote
from mamushi.io.model_files import has_chat_template, positions_of, source_mistake
from mamushi.registry import plugin, plugins
from mamushi.rooms import additions

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
    tiny = [full["models"][name] for name in models_used(full) if "family" in full["models"][name]]
    return [name for model in tiny for name in model["pretraining"]["datasets"]]


# Names ----------------------------------------------------------------------------------------


def check_names(full: Config) -> Iterator[str]:
    """Whatever is named is defined."""
    defined = {
        "datasets": full["datasets"],
        "models": full["models"],
        "selectors": {**plugins("selector"), **full["selectors"]},
        "unlearners": {**plugins("unlearner"), **full["unlearners"]},
    }
    for at, section, name in _names_used(full):
        if name not in defined[section]:
            yield f"{at}: unknown {section[:-1]} {name!r}; {instead(name, defined[section])}"
    for name in full["unlearners"]:
        if name in RESERVED:
            yield f"unlearners.{name}: this name is taken in the tables; choose another"
    for name, definition in full["selectors"].items():
        for key, base in base_selectors(definition):
            if of_tokens(full, base):
                at = f"selectors.{name}.{key}"
                yield f"{at}: {base!r} ranks tokens; name a selector of texts"


def _names_used(full: Config) -> Iterator[tuple[str, str, str]]:
    """Yield where a name stands, the section that defines it, and the name. One that is taken over
    from the grid stands there alone."""
    for where, axes in comparisons(full):
        for section in ("datasets", "models", "selectors", "unlearners"):
            in_grid = full["grid"].get(section, ()) if where != "grid" else ()
            for place, name in enumerate(axes.get(section, ())):
                if name not in in_grid:
                    yield f"{where}.{section}[{place}]", section, name
    yield "removal.ratio", "selectors", full["removal"]["ratio"]
    for place, name in enumerate(full["evidence"]["compared"]):
        yield f"evidence.compared[{place}]", "selectors", name
    for name, definition in full["selectors"].items():
        for key, base in base_selectors(definition):
            yield f"selectors.{name}.{key}", "selectors", base
    for name, model in full["models"].items():
        if model.get("base") is not None:
            yield f"models.{name}.base", "models", model["base"]
        for place, dataset in enumerate(model.get("pretraining", {}).get("datasets", ())):
            yield f"models.{name}.pretraining.datasets[{place}]", "datasets", dataset


# Datasets -------------------------------------------------------------------------------------


def _check_tracker(full: Config) -> Iterator[str]:
    tracker = full["execution"]["tracker"]
    if tracker and find_spec(tracker) is None:
        yield f"execution.tracker: {tracker} is not installed; pip install {tracker}"


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
    """Check that what is used has its files, where a path is given."""
    for name in datasets_used(full):
        for raw in raw_paths(full["datasets"][name]):
            if raw.missing:
                yield not_allowed(f"datasets.{name}.{raw.key}", raw.value, raw.missing)
    vectors = {
        f"models.{name}.embeddings.path": full["models"][name]["embeddings"]["path"]
        for name in models_used(full)
        if "embeddings" in full["models"][name]
        and not is_remote(full["models"][name]["embeddings"]["path"])
    }
    lists = full["unlearning"]["lists"].items()
    for at, path in {**vectors, **{f"unlearning.lists.{n}": p for n, p in lists}}.items():
        # A list that the workflow writes itself may not be there yet.
        files_at = vector_shards(path) if path and at in vectors else [Path(path)] if path else []
        is_there = path is None or (bool(files_at) and all(map(Path.is_file, files_at)))
        if not is_there and not path.startswith("results/"):
            yield not_allowed(at, path, "no such file")


def not_allowed(at: str, value: object, why: str) -> str:
    """Return the line of a value that is not allowed, which is whole, however long: a path that is
    cut cannot be looked at."""
    return f"{at}: {value!r} is not allowed; {why}"


# Models ---------------------------------------------------------------------------------------


def _check_sources(full: Config) -> Iterator[str]:
    """Check that a source is a folder that is there, or a hub's id with a pinned revision."""
    for name in models_used(full):
        model, at = full["models"][name], f"models.{name}"
        source = model.get("source")
        if source is None:
            continue
        if problem := source_mistake(source):
            yield not_allowed(f"{at}.source", source, problem)
        elif Path(source).is_dir():
            continue
        elif not re.fullmatch(r"[\w.-]+/[\w.-]+", source) or source[0] in ".~":
            yield (
                f"{at}.source: {source!r} is no folder; give a model's folder or its id on the hub"
            )
        elif model["revision"] is None:
            yield (
                f"{at}.revision: null is not allowed, since {source!r} is no folder here; pin a "
                "hub model to a commit of 40 hexadecimal digits"
            )


def _check_lengths(full: Config) -> Iterator[str]:
    """Nothing reads more tokens of a text than the token cache keeps."""
    most = full["tokens"]["max_length"]
    readers = {key: full[key] for key in ("training", "embedding", "evaluation", "unlearning")}
    for name in models_used(full):
        training = full["models"][name].get("training", full["training"])
        if training["max_length"] != full["training"]["max_length"]:
            readers[f"models.{name}.training"] = training
    for at, reader in readers.items():
        if reader["max_length"] > most:
            words = f"it is at most tokens.max_length, {most}"
            yield not_allowed(f"{at}.max_length", reader["max_length"], words)


def check_positions(full: Config, written: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each length that the configuration, as it was ``written``, asks for beyond
    the positions of a model whose files are here. Where texts are cut by a default, they are cut
    at the positions (see the stage ``tokens``)."""
    readers = ("tokens", "training", "embedding", "evaluation", "unlearning")
    lengths = {at: full[at] for at in readers if _names_length(written.get(at))}
    for name in models_used(full):
        model, at = full["models"][name], f"models.{name}.training"
        positions = model.get("max_positions") or positions_of(str(model.get("source") or ""))
        changed = _names_length(written["models"][name].get("training"))
        keys = lengths | ({at: model["training"]} if changed else {})
        for key, reader in keys.items() if positions else ():
            if reader["max_length"] > positions:
                words = f"the model {name!r} has positions for {positions} tokens; lower it"
                yield not_allowed(f"{key}.max_length", reader["max_length"], words)


def _check_answers(full: Config) -> Iterator[str]:
    """Check that what finds answers, a template for conversations, comes with the models."""
    for dataset in datasets_used(full):
        if not full["datasets"][dataset].get("assistant_only_loss"):
            continue
        for name in models_used(full):
            model = full["models"][name]
            source = model.get("source")
            if "family" in model or (source and not has_chat_template(source)):
                at = f"datasets.{dataset}.assistant_only_loss"
                words = f"the tokenizer of the model {name!r} has no chat template"
                yield not_allowed(at, True, f"{words}; give it one, or leave this out")


def _names_length(section: Any) -> bool:
    return isinstance(section, Mapping) and section.get("max_length") is not None


# Selectors ------------------------------------------------------------------------------------


def _check_selectors(full: Config) -> Iterator[str]:
    """Check that a selector that derives from another ends at one that stands alone, that the
    ratio's scores both domains, and that each reads what there is at depths that are pooled."""
    pooled = full["embedding"]["depths"]
    for name, definition in full["selectors"].items():
        links, key = chain(full, name), kind_of(full, name).depths
        if len(set(links)) < len(links):
            yield f"selectors.{name}: derives from itself ({' from '.join(links)})"
        for depth in definition[key] if key else ():
            if depth not in (*pooled, 1):
                depths = ", ".join(f"{layer:g}" for layer in pooled)
                yield (
                    f"selectors.{name}.{key}: {depth:g} is not among embedding.depths ({depths}); "
                    "1 is the embedding itself"
                )
    ratio = full["removal"]["ratio"]
    if not scores_both(full, ratio):
        yield (
            f"removal.ratio: {ratio!r} is not allowed, since it gives retain texts no score and so "
            "estimates no density ratio; choose a selector that does, such as mamushi"
        )
    for place, name in enumerate(full["evidence"]["compared"]):
        at = f"evidence.compared[{place}]"
        yield from _check_asked(full, "grid", at, name, full["grid"])
        if of_tokens(full, name):
            yield f"{at}: {name!r} is not allowed, since it ranks tokens and lists no text"
    for where, axes in comparisons(full):
        for place, name in enumerate(axes["selectors"]):
            yield from _check_asked(full, where, f"{where}.selectors[{place}]", name, axes)
        if where not in axes_sections():
            yield from _check_asked(full, where, "removal.ratio", ratio, axes)


def _check_asked(full: Config, where: str, at: str, name: str, axes: Config) -> Iterator[str]:
    """Check that a selector has what it reads of the datasets and models that it is asked for with:
    tokens, which not all unlearn; layers of a model; the truth."""
    in_section, links = where in axes_sections(), chain(full, name)
    vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
    if of_tokens(full, name) and in_section:
        yield from _check_tokens(full, where, at, name, axes)
    if of_tokens(full, name) and vectors:
        yield (
            f"{at}: {name!r} ranks tokens, and models.{vectors[0]} has vectors alone "
            "and no tokenizer; leave one of them out"
        )
    for link in links if vectors and not in_section else ():
        if reads_layers(full, link):
            key = kind_of(full, link).depths
            yield (
                f"selectors.{link}.{key}: reads layers of a language model, and {where}.models has "
                f"{vectors[0]!r}, of which there are embeddings alone; write {key}: [1]"
            )
    if any(kind_of(full, link).needs_truth for link in links):
        knowing = [name for name, loader in plugins("dataset").items() if loader.knows_truth]
        # What others take over from the grid is told of there.
        in_grid = full["grid"] if where != "grid" and name in full["grid"]["selectors"] else {}
        for dataset in axes["datasets"]:
            is_told = dataset in in_grid.get("datasets", ())
            if not is_told and full["datasets"][dataset]["kind"] not in knowing:
                yield (
                    f"{at}: {name!r} is not allowed with the dataset {dataset!r}; it needs the "
                    f"true density ratio, which {' or '.join(knowing)} data has"
                )


def _check_tokens(full: Config, where: str, at: str, name: str, axes: Config) -> Iterator[str]:
    """Check that tokens can be unlearned: by loss, and in texts that are as long as where they were
    ranked. A section that asks of single texts whether they were removed has none of them."""
    if where not in ("unlearning", "probe"):
        yield f"{at}: {name!r} is not allowed, since it ranks tokens and lists no text"
        return
    for unlearner in axes["unlearners"]:
        if not plugin("unlearner", full["unlearners"][unlearner]["kind"]).unlearns_tokens:
            yield (
                f"{at}: {name!r} ranks tokens, and {unlearner!r} unlearns whole texts alone; "
                f"leave one of them out of {where}"
            )
    cuts = [full["models"][model].get("training", full["training"]) for model in axes["models"]]
    if (longest := max(cut["max_length"] for cut in cuts)) > full["unlearning"]["max_length"]:
        yield (
            f"{at}: {name!r} ranks the tokens of texts of {longest} tokens (training.max_length); "
            "unlearning.max_length is to be as many"
        )


def checks(full: Config) -> Iterator[str]:
    """Yield a line for each mistake of a configuration in which all names are defined."""
    ours = (_check_ranked, _check_sources, _check_lengths, _check_selectors, _check_files)
    for check in (*ours, _check_answers, _check_tracker, *additions("config_checks")):
        yield from check(full)
