"""A table of your own: CSV, TSV, JSON, text, Parquet or Arrow, one text a row.

Source: the file or folder ``path``. Forget: rows of which an expression over the columns is true.
Retain: all others, or those of which another one is; then rows of neither are left out. Where
nobody marked the domain, examples of it lie in another table, or a blocklist finds them. A column
may hold a ready-made split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import model_serializer, model_validator

from mamushi.config.kinds import SOME, PlaceOrNull, Positive, Section, SectionName, key
from mamushi_extras.remote.urls import localize

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

FILES: dict[str, list[str]] = {"path": []}
BESIDE_KEYS = {
    "where": (),
    "like": ("unlike", "text", "screen", "screened", "fair"),
    "terms": ("unlike", "text"),
}
"""What marks the forget domain -> keys that may stand beside it. No others would be read."""
BESIDE = ("forget.like", "forget.unlike", "forget.terms", "forget.screened", "answers")


class Marked(Section):
    """What marks the retain domain, in the same way; rows of neither are left out. Null: all rows
    that are not of the forget domain."""

    where: str


class Examples(Section):
    """What marks the forget domain: an expression, or examples of it beside the table."""

    where: str | None = key(
        None, "Expression, true of its rows: toxic > 0.5 or `a topic` in ['b'] or rude is null."
    )
    like: PlaceOrNull = key(
        None, "Table with examples of the domain, which nobody marked in the rows of `path`."
    )
    unlike: PlaceOrNull = key(None, "Table with texts that are not of it: a sample of the rest.")
    fair: Annotated[list[Literal["like", "unlike"]], SOME] | None = key(
        None, "Which of the two were drawn at random: some ends of intervals rest on that."
    )
    text: str | None = key(None, "Column with the text in these two; by default that of `path`.")
    screen: Positive | None = key(
        None, "How many texts are kept, or below 1 what share: those with words like the examples'."
    )
    screened: PlaceOrNull = key(None, "In its place, the file of a screen that datatrove ran.")
    terms: PlaceOrNull = key(None, "Blocklist, a term or /regular expression/ a line.")

    @model_serializer(mode="wrap")
    def without_nulls(self, dump: Callable[[Self], dict[str, Any]]) -> dict[str, Any]:
        """Return the keys that are not null."""
        return {name: value for name, value in dump(self).items() if value is not None}

    @model_validator(mode="after")
    def check_shape(self) -> Self:
        keys = self.model_dump().keys()
        if not any({needed} <= keys <= {needed, *BESIDE_KEYS[needed]} for needed in BESIDE_KEYS):
            raise ValueError(f"allowed is one of: {', '.join(BESIDE_KEYS)}, and what is of it")
        return self


class Settings(Section):
    """Settings of this dataset."""

    path: PlaceOrNull = key(
        None,
        "The file (.csv, .tsv, .jsonl, .json, .txt, each also with .zip, .gz or .zst, .parquet, "
        ".arrow), a folder of such files, one that datasets saved, or a URL of these, on the hub "
        "hf://datasets/ORG/NAME/PATH.",
    )
    text: str = key(
        "text", "Column with the text or conversations; or several, as prompt,completion."
    )
    part: Literal["whole", "without_system", "assistant"] = key(
        "whole", "Of a conversation: all, all but what the system says, or what the assistant says."
    )
    assistant_only_loss: bool = key(
        False, "Of conversations, predict what the assistant says alone, as TRL's key of this name."
    )
    id: str | None = key(None, "Column with an id; null takes the row number, from 1.")
    forget: Examples
    retain: Marked | None = None
    section: str | None = key(None, "Column with a split; empty cells are split by the shares.")
    section_values: dict[str, SectionName] = key({}, "Of its values, as {train: inference}.")
    group: str | None = key(
        None,
        "Column whose equal values mark texts that depend on each other, as of a thread or an "
        "author: they stay in one section and one fold. An empty cell is a text on its own.",
    )
    answers: PlaceOrNull = key(
        None, "merged.json of mamushi audit, which overrules what marks the domain."
    )
    quote: Literal["none"] | None = key(
        None, 'Of CSV and TSV: none where `"` is a character as any other, and a line a row.'
    )
    separator: Literal[",", ";", "|", "tab"] | None = key(
        None, "Of CSV and TSV; null: as the ending says, or the first rows of a .csv."
    )
    labels: list[str] = key([], "Columns to carry along, as label_<name>.")
    other_columns: bool = key(
        True, "Ask of all other columns but texts whether they give the domain away."
    )

    @model_validator(mode="after")
    def check_part(self) -> Self:
        """Refuse ``assistant_only_loss`` where only the assistant's part of a chat is read."""
        if self.assistant_only_loss and self.part == "assistant":
            raise ValueError("assistant_only_loss is of whole conversations; leave part out")
        return self


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the table. Raises ``UserError`` as ``rows.read_raw``."""
    from mamushi.registry import additions
    from mamushi_curate.tables.rows import read_raw

    settings = localize(settings)
    steps: dict[str, Any] = {"read": read_raw}
    for reading_steps in additions("reading_steps"):
        steps |= reading_steps(settings)
    raw: Raw = steps["read"](settings)
    for name in ("divide", "mark", "answer"):
        raw = steps[name](raw, settings) if name in steps else raw
    return raw
