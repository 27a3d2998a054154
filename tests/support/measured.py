"""Numbers of the documentation's tables and paragraphs, and those of the files that they are from.

A table of measured numbers stands below a comment that says from which file of
``studies`` or ``benchmarks/results`` each of its cells is::

    <!-- numbers
    file: studies/networks/agreement-demo-2026-11-22-amd-epyc-2-cores.txt
    rows: [1, 5]                                   # put for {} in the keys of the row
    columns: ["networks_{}_overlap", "networks_{}_low networks_{}_high"]   # from the second column
    -->

A cell has the numbers of its keys in their order, rounded as they are written there. Of several
files, ``files`` gives each a name, and keys end in ``@NAME``. Above a paragraph, ``prose`` lists
the keys of its numbers and ``also`` what was not measured. In a CSV file ``column?name=value`` is
the mean of the column over those rows, and ``name=one-other`` the paired difference over seeds,
with its 95% interval by Student's t. ``<!-- numbers: none, WHY -->`` stands above a table of
numbers that were not measured.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from mamushi.evaluation.paired import interval

NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?!\w|\.\d)")
MEASURED = re.compile(r"^\**[-+−]?\d[\d,]*(?:\.\d+)?%?\**(?=$|,| [\[(])|[-+−\d.]+ \[[-+−]?\d")
SPECIFIED = re.compile(r"<!-- numbers(:| *\n)(.*?)-->\s*\Z", re.S)


class Block(NamedTuple):
    """A table or paragraph, and what the comment above it says of its numbers, if there is one."""

    text: str
    spec: dict[str, Any] | None

    @property
    def cells(self) -> list[list[str]]:
        """The cells of each row of a table, without its head."""
        lines = [line.strip().strip("|") for line in self.text.splitlines()[2:]]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]


def blocks(page: str) -> Iterator[Block]:
    """Tables and paragraphs of a page, without fenced code."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)
    above = ""
    for part in re.split(r"\n\s*\n", page):
        found = SPECIFIED.search(above)
        if not part.lstrip().startswith("<!--"):
            yield Block(part.strip(), specification(*found.groups()) if found else None)
        above = part


def specification(kind: str, said: str) -> dict[str, Any]:
    return {"none": said.strip()} if kind == ":" else yaml.safe_load(said)


def numbers(text: str) -> list[str]:
    """The numbers of a text as they are written, without code and links."""
    return NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)|\b\d{4}-\d\d-\d\d\b", " ", text))


def problems(page: str, folder: Path) -> list[str]:
    """What numbers of a page are in no file, and which tables say of no file."""
    found = []
    for block in blocks(page):
        spec = block.spec or {}
        if "none" in spec:
            continue
        if "prose" in spec:
            found += prose(block.text, spec, folder)
        elif block.text.startswith("|") and "columns" in spec:
            found += table(block, spec, folder)
        elif block.text.startswith("|"):
            measured = [c for row in block.cells for c in row[1:] if MEASURED.search(c)]
            found += [f"no file is named for {cell}" for cell in measured]
    return found


def table(block: Block, spec: dict[str, Any], folder: Path) -> Iterator[str]:
    if [len(block.cells), *{len(row) - 1 for row in block.cells}] != [
        len(spec["rows"]),
        len(spec["columns"]),
    ]:
        yield f"other rows or columns than the comment above {block.text.splitlines()[0]}"
        return
    for (row, cells), (at, keys) in product(
        zip(spec["rows"], block.cells, strict=True), enumerate(spec["columns"], start=1)
    ):
        said = numbers(cells[at])
        if not said:
            continue
        of = [v for key in keys.replace("{}", str(row)).split() for v in values(key, spec, folder)]
        if len(of) != len(said) or not all(map(rounds, said, of)):
            yield f"{row}, column {at}: {cells[at]} is {of} in its file"


def prose(text: str, spec: dict[str, Any], folder: Path) -> Iterator[str]:
    of = [value for key in spec["prose"] for value in values(key, spec, folder)]
    known = {str(each) for each in spec.get("also", ())}
    for said in numbers(text):
        if said not in known and not any(rounds(said, value) for value in of):
            yield f"{said} is none of the file's {of}"


def rounds(said: str, value: float) -> bool:
    """Whether a number as it is written is the value, rounded."""
    plain = said.replace("−", "-").replace(",", "").rstrip("%")
    half = 0.5 * 10.0 ** -len(plain.partition(".")[2])
    return abs(float(plain) - value * (100 if said.endswith("%") else 1)) <= half * (1 + 1e-6)


def values(key: str, spec: dict[str, Any], folder: Path) -> list[float]:
    """The numbers under a key in its file. Raises ``KeyError`` where there is none."""
    key, _, name = key.partition("@")
    path = folder / (spec["files"][name] if name else spec["file"])
    if path.suffix == ".csv":
        return of_rows(key, path)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{key} "):
            rest = re.split(r" (?:seeds|p_holm) ", line.removeprefix(key))[0]
            return [float(each) for each in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", rest)]
    raise KeyError(f"{key} is not in {path.name}")


def of_rows(key: str, path: Path) -> list[float]:
    column, _, wanted = key.partition("?")
    filters = dict(each.split("=") for each in wanted.split("&"))
    (pair,) = [name for name, value in filters.items() if "-" in value] or [None]
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def of(filters: dict[str, str]) -> np.ndarray:
        kept = [row for row in rows if all(row[name] == value for name, value in filters.items())]
        return np.array([float(row[column]) for row in sorted(kept, key=lambda row: row["seed"])])

    if pair is None:
        return [float(of(filters).mean())]
    one, other = filters[pair].split("-")
    differences = of(filters | {pair: one}) - of(filters | {pair: other})
    return [float(differences.mean()), *interval(differences)]
