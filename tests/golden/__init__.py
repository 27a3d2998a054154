"""Numbers of every stage on the small demo, beside the `VERSION` that stands for them.

A stage's code may change without a new `VERSION` as long as its numbers stay. A record has both, so
that neither can change alone. Numbers are few and rounded: of each column, key or tensor how many
values there are and their mean size.

There is a record for each arithmetic. Processors round differently, and where a training stops
early the last bits decide when: then no tolerance makes their numbers the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.numpy import load_file

from mamushi.running.machine import processor
from mamushi.running.stage import stages as all_stages
from tests.support.demo import TARGETS, science
from tests.support.dry_runs import Snakemake

FOLDER = Path(__file__).parent
STAGES = all_stages()
TOLERANCE = 2e-3
"""Relative difference of means that another processor may make."""
TIMES = re.compile(r"second|runtime|memory|peak|machine|processor|cores|threads|version|digest")
"""Names of what no two runs have in common."""
ABOUT = {"provenance", "versions", "settings", "digests", "inputs", "execution"}

Numbers = dict[str, list[float]]
"""Name of a column, key or tensor -> how many values it has, and the mean of their sizes."""


class Arithmetic(NamedTuple):
    """The name of a processor, and a digest of what it makes of some sums; none in a record of
    before that was noted."""

    processor: str
    bits: str | None

    @classmethod
    def here(cls) -> Arithmetic:
        """Return that of this machine. No code of the program takes part, so that a change of it
        finds the record that it has to keep to."""
        generator = torch.Generator().manual_seed(0)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        digest = hashlib.sha256()
        for width in (16, 48, 130):
            x, w = (torch.randn(257, width, generator=generator) for _ in range(2))
            product = x @ w.T
            for result in (product, product.softmax(1), product.logsumexp(1), x.T @ w, x.var(0)):
                digest.update(result.contiguous().numpy().tobytes())
        torch.set_num_threads(threads)
        return cls(processor(), digest.hexdigest()[:16])

    def is_of(self, other: Arithmetic) -> bool:
        """Return whether numbers of this record are to be had by another arithmetic."""
        return self.bits == other.bits or (self.bits is None and self.processor == other.processor)


class Recorded(NamedTuple):
    """What a run of the demo has of a stage."""

    module: str
    version: int
    """The ``VERSION`` of the module, which stands for all of its stages; 1 where it has none."""
    upstream: list[str]
    """Stages whose outputs it reads, directly or through others."""
    numbers: Numbers


def measured(values: Any) -> list[float]:
    """Return how many finite numbers there are and the mean of their sizes, to four digits."""
    array = np.asarray(values, np.float64).ravel()
    array = np.abs(array[np.isfinite(array)])
    return [float(array.size), float(f"{array.mean():.4g}") if array.size else 0.0]


def of_table(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the values of each column; of text, how often each word occurs."""
    for name, column in zip(pq.read_schema(path).names, pq.read_table(path).columns, strict=True):
        values = column.combine_chunks()
        while pa.types.is_nested(values.type) and hasattr(values, "flatten"):
            values = values.flatten() if not pa.types.is_struct(values.type) else values.field(0)
        if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
            yield name, values.to_numpy(zero_copy_only=False)
        else:
            yield name, [count["counts"] for count in values.value_counts().to_pylist()]


def of_json(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers under each key, but for those that say how and where they were made."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in ABOUT:
                yield from of_json(item, f"{key}.{name}" if key.count(".") < 1 else key)
    elif isinstance(value, list):
        for item in value:
            yield from of_json(item, key)
    elif isinstance(value, int | float):
        yield key, [value]


def of_file(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what an output holds by the names of its columns, keys or tensors."""
    if path.suffix == ".parquet":
        yield from of_table(path)
    elif path.suffix == ".json":
        yield from of_json(json.loads(path.read_text(encoding="utf-8")))
    elif path.suffix == ".safetensors":
        for name, tensor in load_file(path).items():
            yield re.sub(r"\.\d+\.", ".", name), tensor


def record(folder: Path) -> dict[str, Recorded]:
    """Return the numbers of each stage in a folder where the demo has run."""
    with Snakemake() as snakemake:
        graph = snakemake.files(folder, targets=TARGETS, change=science())
        shells = snakemake.look(folder, targets=TARGETS, change=science())["rules"]
    makers: dict[str, str] = {}
    reads: dict[str, set[str]] = defaultdict(set)
    values: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for rule, files in graph.items():
        if rule == "targets":
            continue
        stage = re.search(r"-m mamushi (\S+)", shells[rule]["shell"])[1]  # type: ignore[index]
        for inputs, outputs in files["files"]:
            reads[stage] |= {*inputs}
            makers |= dict.fromkeys(outputs, stage)
            # The comparison with the paper has its run times too.
            for path in (folder / name for name in outputs if not name.endswith("/paper.parquet")):
                for name, found in of_file(path) if path.is_file() else ():
                    if not TIMES.search(name):
                        values[stage][f"{path.name}: {name}"].append(np.ravel(found))
    direct = {stage: {makers[p] for p in paths if p in makers} for stage, paths in reads.items()}
    return {
        stage: Recorded(
            STAGES[stage].module.__name__,
            STAGES[stage].version,
            sorted(reached(stage, direct)),
            {name: measured(np.concatenate(v)) for name, v in sorted(values[stage].items())},
        )
        for stage in sorted(direct)
    }


def reached(stage: str, direct: Mapping[str, set[str]]) -> set[str]:
    """Return all stages that a stage depends on."""
    stages: set[str] = set()
    waiting = {*direct[stage]}
    while waiting:
        stages |= waiting
        waiting = {name for each in waiting for name in direct[each]} - stages
    return stages - {stage}


def differences(was: Numbers, numbers: Numbers) -> list[str]:
    """Return what is in one of them alone, or differs by more than another processor makes."""
    lines = [f"{name} is in one of them alone" for name in sorted(was.keys() ^ numbers.keys())]
    for name in sorted(was.keys() & numbers.keys()):
        if was[name] != numbers[name] and not np.allclose(
            was[name], numbers[name], rtol=TOLERANCE, atol=1e-6
        ):
            lines.append(f"{name} was {was[name]}, is {numbers[name]}")
    return lines


def stored(here: Arithmetic) -> dict[str, Recorded] | None:
    """Return the record of each stage by this arithmetic; None without one."""
    for path in sorted(FOLDER.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if Arithmetic(**found["arithmetic"]).is_of(here):
            return {name: Recorded(**fields) for name, fields in found["stages"].items()}
    return None


def problems(old: Mapping[str, Recorded], new: Mapping[str, Recorded]) -> list[str]:
    """Return where numbers or a version have changed alone."""
    newer = {name for name in old.keys() & new.keys() if new[name].version != old[name].version}
    lines, moved = [], set()
    for name in sorted(old.keys() & new.keys()):
        if changes := differences(old[name].numbers, new[name].numbers):
            moved.add(new[name].module)
            if not newer & {name, *new[name].upstream}:
                text = "; ".join(changes)
                lines.append(
                    f"{name}: raise VERSION of {new[name].module}, numbers changed: {text}"
                )
    for module in sorted({new[name].module for name in newer if new[name].numbers} - moved):
        lines.append(f"{module}: its VERSION is another one, its numbers are the same")
    return lines
