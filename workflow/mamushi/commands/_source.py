"""What a format is given: a removal list, and the rows of the table that it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mamushi.artifacts.domains import INFERENCE
from mamushi.commands._removal_list import RemovalList
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

    listed: RemovalList
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
        """Iterate over all rows, in order; null counts as empty.

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
                    what = f"column {self.columns[name]!r} is {text!r}, not text"
                    where, do = (
                        f"{file.name}, row {removal.read}",
                        "name the text column with --text",
                    )
                    raise UserError(what, where=where, do=do)
            yield Row(file, str(cells["id"] if self.id else removal.read), texts, gone)
        if not removal.found:
            do = "name the column with --id, or give the table that was ranked"
            raise UserError(f"none of its {len(removal.ids)} ids is there", where=self.data, do=do)

    def trained(self, row: Row, text: str) -> dict[str, Any] | None:
        """Return what a trainer is given of a row, its text under this name; None for nothing."""
        if row.on_the_list and not self.weights:
            return None
        cells: dict[str, Any] = {
            text if name == "text" else name: cell for name, cell in row.cells.items()
        }
        return cells | ({"weight": 0.0 if row.on_the_list else 1.0} if self.weights else {})

    def write_trained(self, path: Path, text: str) -> None:
        """Write what a trainer is given as JSON Lines, the text under the name ``text``."""
        with path.open("w", encoding="utf-8") as handle:
            for row in self.rows():
                if (cells := self.trained(row, text)) is not None:
                    handle.write(json_line(cells))

    def manifest(self) -> Mapping[str, Any]:
        """Return the list's manifest. Raises ``UserError`` where there is none."""
        if self.listed.manifest is None:
            do = "give a list of a run, results/runs/.../removals/SELECTOR/betaB.parquet"
            raise UserError("has no manifest beside it", where=self.listed.path, do=do)
        return self.listed.manifest


def json_line(value: Mapping[str, Any]) -> str:
    """Return an object as a line of JSON Lines."""
    return json.dumps(value, ensure_ascii=False) + "\n"
