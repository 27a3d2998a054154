"""What lies on the disk at the paths of a dataset: its raw files, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.registry import plugin


class RawPath(NamedTuple):
    """A key of a dataset that names raw files: which of them are there, what is missing."""

    key: str
    value: str
    files: list[Path]
    missing: str | None


def unlabelled(dataset: Mapping[str, Any]) -> bool:
    """Return whether nobody marked the domain in a dataset: there are examples of it, or terms."""
    forget = dataset.get("forget")
    return isinstance(forget, Mapping) and bool({"like", "terms"} & forget.keys())


def beside(dataset: Mapping[str, Any]) -> dict[str, str]:
    """Return the files beside the table of such a dataset, by their keys; none of others."""
    forget = dataset["forget"] if unlabelled(dataset) else {}
    return {key: forget[key] for key in ("like", "unlike", "terms") if key in forget}


def raw_paths(dataset: Mapping[str, Any]) -> Iterator[RawPath]:
    """Yield the keys that name raw files, as far as they have a value."""
    loader = plugin("dataset", dataset["kind"])
    for key, names in loader.files.items():
        if dataset[key] is not None:
            yield RawPath(key, dataset[key], *_look(dataset[key], names, loader.shards))
    if answers := dataset.get("answers"):
        yield RawPath("answers", answers, *_look(answers, [], sharded=False))
    for key, value in beside(dataset).items():
        yield RawPath(f"forget.{key}", value, *_look(value, [], key != "terms"))


def _look(value: str, names: list[str], sharded: object) -> tuple[list[Path], str | None]:
    """Return the raw files at a path, a folder with the files ``names`` or, without names, a file
    or where the loader takes one a folder of shards; and what is missing, if anything."""
    path = Path(value)
    if sharded and (path.is_dir() or "*" in path.name):
        try:
            return tabular.find(path), None
        except UserError as error:
            return [], f"{error.problem}; {error.do}"
    if not names:
        return ([path], None) if path.is_file() else ([], tabular.no_file(path))
    means = f"it names a folder with {', '.join(names)} (each plain or as .zip)"
    if not path.is_dir():
        return [], f"no such folder; {means}"
    files, lacks = [], []
    for name in names:
        choices = [choice for choice in (path / name, path / f"{name}.zip") if choice.is_file()]
        files += choices[:1]
        lacks += [] if choices else [name]
    return files, f"{', '.join(lacks)} not there; {means}" if lacks else None


def files(dataset: Mapping[str, Any]) -> list[str]:
    """Return the raw files of a completed dataset, to declare as inputs; none without a path."""
    return [str(path) for raw in raw_paths(dataset) for path in raw.files]


def fetch_remote(
    full: Mapping[str, Any], datasets: Sequence[str], models: Sequence[str]
) -> list[str]:
    """Put the copies in the place of URLs, in a configuration that has its defaults: of tables and
    files beside them of these datasets, of vectors of these models, and of lists. What has no copy
    is fetched. Return a line for each that cannot be."""
    places: list[tuple[str, Any, str, bool]] = []
    for name in datasets:
        dataset, at = full["datasets"][name], f"datasets.{name}"
        places += [(at, dataset, key, True) for key in plugin("dataset", dataset["kind"]).files]
        places += [(at, dataset, "answers", False)]
        for key in beside(dataset):
            places.append((f"{at}.forget", dataset["forget"], key, key != "terms"))
    for name in models:
        if vectors := full["models"][name].get("embeddings"):
            places.append((f"models.{name}.embeddings", vectors, "path", False))
    lists = full["unlearning"]["lists"]
    places += [("unlearning.lists", lists, name, False) for name in lists]
    mistakes = []
    for at, section, key, table in places:
        if tabular.is_remote(url := section.get(key)):
            from mamushi.running import remote

            try:
                section[key] = str(remote.fetch_copy(url, table=table))
            except UserError as error:
                mistakes.append(f"{at}.{key}: {error}")
    return mistakes
