"""Which jobs read the files of a corpus that is screened."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mamushi.config.sources import raw_paths, unlabelled
from mamushi.io.copies import is_remote

MOST_SHARDS = 1000
"""The command that joins shards names a file of each, and Linux takes 128 KiB of it."""


def shards_of(config: Mapping[str, Any], dataset: str) -> list[list[Path]]:
    """Return the files of a dataset by shard: at most ``execution.shards`` runs of whole files, of
    about as many bytes, and at most ``MOST_SHARDS``. One for a dataset that is not screened, of one
    file, or at a URL, whose files a dry run does not know. In a process, files are listed once."""
    definition = config["datasets"][dataset]
    return _listed(json.dumps(definition), config["execution"]["shards"], os.getcwd())


@cache
def _listed(text: str, most: int, folder: str) -> list[list[Path]]:
    definition = json.loads(text)
    files = [file for raw in raw_paths(definition) if raw.key == "path" for file in raw.files]
    screened = unlabelled(definition) and definition["forget"].get("screen")
    if not screened or is_remote(definition["path"]):
        return [files]
    return divide_files(files, min(most, MOST_SHARDS))


def divide_files(files: Sequence[Path], most: int) -> list[list[Path]]:
    """Divide files into at most so many runs of about as many bytes; each has a file."""
    sizes = [os.path.getsize(file) for file in files]
    count = min(most, len(files))
    runs: list[list[Path]] = []
    start, rest = 0, sum(sizes)
    for left in range(count, 0, -1):
        # Up to where another file would add more beyond an equal share than it lacks.
        stop, taken = start + 1, sizes[start]
        while len(files) - stop >= left and taken + sizes[stop] / 2 <= rest / left:
            taken, stop = taken + sizes[stop], stop + 1
        stop = len(files) if left == 1 else stop
        runs.append([*files[start:stop]])
        start, rest = stop, rest - taken
    return runs


def over_shards(shards: Mapping[str, Sequence[Any]], pattern: str) -> Callable[[Any], list[str]]:
    """Return what gives the files of a pattern for all ``shards`` of the dataset of a job, in the
    order of its rows."""
    return lambda wildcards: [
        pattern.format(dataset=wildcards.dataset, shard=place)
        for place in range(len(shards[wildcards.dataset]))
    ]
