"""What a format is given: a removal list, and the rows of the table that it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mamushi.artifacts.domains import INFERENCE
from mamushi.commands._listed import Listed
from mamushi.data.rewriting import Removal, rows
from mamushi.errors import UserError


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    file: Path
    id: str
    cells: dict[str, str]
    """``text``, and ``prompt`` where there is one."""
    on_the_list: bool


@dataclass(frozen=True)
class Source:
    """A list and its table."""

    listed: Listed
    data: Path = Path()
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of ``text``, and of ``prompt`` where there is one."""
    id: str | None = None
    """The column with the ids; None: row numbers."""
    weights: bool = False
    inference: bool = False
    """Whether the table is that of the examples, of which this section was ranked."""

    @property
    def prompted(self) -> bool:
        return "prompt" in self.columns

    @property
    def names(self) -> list[str]:
        """Of the cells, in their order."""
        return [name for name in ("prompt", "text") if name in self.columns]

    def rows(self) -> Iterator[Row]:
        """All rows, in order; null counts as empty.

        Raises ``UserError`` for a missing column, a text that is not text, and a table in which
        nothing of the list is.
        """
        removal = Removal(self.listed.all, self.id)
        wanted = {name: self.columns[name] for name in self.names}
        wanted |= {"id": self.id} if self.id else {}
        wanted |= {"section": "section"} if self.inference else {}
        for file, cells in rows(self.data, wanted):
            gone = removal.takes(cells.get("id"))
            if cells.get("section", INFERENCE) != INFERENCE:
                continue
            texts = {name: cells[name] or "" for name in self.names}
            for name, text in texts.items():
                if not isinstance(text, str):
                    raise UserError(
                        f"column {self.columns[name]!r} is {text!r}, not text",
                        where=f"{file.name}, row {removal.read}",
                        do="name the text column with --text",
                    )
            name = str(removal.read) if self.id is None else str(cells["id"])
            yield Row(file, name, texts, gone)
        if not removal.found:
            raise UserError(
                f"none of its {len(removal.ids)} ids is there",
                where=self.data,
                do="name the column with --id, or give the table that was ranked",
            )

    def trained(self, row: Row, text: str) -> dict[str, Any] | None:
        """What a trainer is given of a row, its text under this name; None for nothing."""
        if row.on_the_list and not self.weights:
            return None
        cells: dict[str, Any] = {
            text if name == "text" else name: cell for name, cell in row.cells.items()
        }
        return cells | ({"weight": 0.0 if row.on_the_list else 1.0} if self.weights else {})

    def manifest(self) -> Mapping[str, Any]:
        """The list's manifest. Raises ``UserError`` where there is none."""
        if self.listed.manifest is None:
            raise UserError(
                "has no manifest beside it",
                where=self.listed.path,
                do="give a list of a run, results/runs/.../removals/SELECTOR/betaB.parquet",
            )
        return self.listed.manifest

    def flat_manifest(self) -> Iterator[tuple[str, Any]]:
        """Its values by dotted names; raises ``UserError`` as ``manifest``."""
        yield from _flat(self.manifest(), "")


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        yield name, json.dumps(value)
    else:
        yield name, value


def json_line(value: Mapping[str, Any]) -> str:
    """An object as a line of JSON Lines."""
    return json.dumps(value, ensure_ascii=False) + "\n"
