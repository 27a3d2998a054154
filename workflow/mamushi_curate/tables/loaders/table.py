"""A table of your own: CSV, TSV, JSON, text, Parquet or Arrow, one text a row.

Source: the file or folder ``path``. Forget: rows in which a column has one of some values, or of
which an expression over the columns is true. Retain: all others, or those that are marked in the
same way; then rows of neither are left out. Where nobody marked the domain, examples of it lie in
another table, or a blocklist finds them. A column may hold a ready-made split.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mamushi.config.kinds import (
    SOME,
    PlaceOrNull,
    Positive,
    Section,
    SectionName,
    as_plain,
    listed,
    named,
)
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io.copies import localized

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

FILES: dict[str, list[str]] = {"path": []}
SHARDS = True
"""A folder may be given, whose files are one table."""


class Marked(Section):
    """What marks the retain domain, in the same way; rows of neither are left out. Null: all rows
    that are not of the forget domain."""

    sparse: ClassVar[bool] = True
    shapes: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {
        ("column", "values"): (),
        ("where",): (),
    }
    """Needed keys -> keys that may stand beside them. No other keys would be read."""

    column: str | None = None  #: Column that marks the domain.
    values: Annotated[list[Any], SOME] | None = None  #: Its values in the domain.
    #: Expression, true of the rows of the domain: toxic > 0.5 or `a topic` in ['b'] (an empty cell
    #: of forget is an error unless it is asked for with `is null`; of retain it is not true).
    where: str | None = None

    def __post_init__(self) -> None:
        keys = as_plain(self).keys()
        if not any({*n} <= keys <= {*n, *beside} for n, beside in self.shapes.items()):
            words = ", ".join(" and ".join(needed) for needed in self.shapes)
            raise ValueError(f"allowed is one of: {words}")


class Examples(Marked):
    """What marks the forget domain: a column and its values, an expression, or examples of it
    beside the table."""

    shapes: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {
        **Marked.shapes,
        ("like",): ("unlike", "text", "screen", "screened", "fair"),
        ("terms",): ("unlike", "text"),
    }

    #: Table with examples of the domain, where the rows of `path` are a corpus in which nobody
    #: marked it.
    like: PlaceOrNull = None
    #: Table with texts that are not of the domain: a sample of the rest.
    unlike: PlaceOrNull = None
    #: Which of these two were drawn at random, like from the domain and unlike from what is wanted:
    #: only then shares, precision and recall have the ends that rest on them.
    fair: Annotated[list[Literal["like", "unlike"]], SOME] | None = None
    text: str | None = None  #: Column with the text in these two; by default that of `path`.
    #: How many texts are ranked, or below 1 what share: those whose words are most like the
    #: examples. The others are read, and not kept.
    screen: Positive | None = None
    #: In its place, of texts that a screen has let through already: its file, by datatrove.
    screened: PlaceOrNull = None
    #: Blocklist, a term or /regular expression/ a line, whose hits are taken for examples, though
    #: not all of them are.
    terms: PlaceOrNull = None


class Settings(Section):
    """Settings of this dataset."""

    #: The file (.csv, .tsv, .jsonl, .json, .txt, each also with .zip, .gz or .zst, .parquet,
    #: .arrow), a folder of such files, one that datasets saved, a URL of these, or
    #: of a data set of the hub: hf://datasets/ORG/NAME?config=en&split=train.
    path: PlaceOrNull = None
    #: Column with the text, or with conversations; or several that are one, as prompt,completion.
    text: str = "text"
    #: Of a conversation: the whole, all but what the system says, or what the assistant says.
    part: Literal["whole", "without_system", "assistant"] = "whole"
    #: Of conversations, predict what the assistant says alone, as TRL's key of this name: in
    #: trainings, likelihoods, masks of tokens and unlearning. All of it is read.
    assistant_only_loss: bool = False
    id: str | None = None  #: Column with an id; null takes the row number, from 1.
    forget: Examples
    retain: Marked | None = None
    #: Column with a ready-made split; empty cells are split by the shares.
    section: str | None = None
    #: Section for each value of that column, such as {train: inference}.
    section_values: dict[str, SectionName] = named()
    #: Column whose equal values mark texts that are not independent, such as a thread or an author:
    #: they stay in one section and one fold. An empty cell is a text on its own.
    group: str | None = None
    #: What people said of its texts: merged.json of mamushi audit. It overrules the columns and, in
    #: a corpus, the examples.
    answers: PlaceOrNull = None
    #: Of CSV and TSV: none where `"` is a character as any other, and a line a row. Null: cells in
    #: double quotes may hold separators and line ends.
    quote: Literal["none"] | None = None
    #: Of CSV and TSV: what divides cells. Null: as the ending says, or the first rows of a .csv.
    separator: Literal[",", ";", "|", "tab"] | None = None
    labels: list[str] = listed()  #: Columns to carry along, as label_<name>.
    #: Ask of all other columns but texts whether they give the domain away.
    other_columns: bool = True

    def __post_init__(self) -> None:
        if self.assistant_only_loss and self.part == "assistant":
            raise ValueError("assistant_only_loss is of whole conversations; leave part out")


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the table. Raises ``UserError`` as ``readers.read_file_columns`` and
    ``rows.raw_of``."""
    from mamushi.rooms import additions

    if settings["path"] is None:
        raise UserError("no path to the table", do="set 'path' to a CSV, JSONL or Parquet file")
    settings = localized(settings)
    read_rows, *_ = [*additions("read_rows", settings), read_raw]
    raw: Raw = read_rows(settings)
    for point in ("divide_rows", "mark_rows", "answer_rows"):
        for step in additions(point, settings):
            raw = step(raw, settings)
    return raw


def read_raw(settings: Mapping[str, Any]) -> Raw:
    """Read the table as it is. Raises ``UserError`` as ``load``."""
    from mamushi_curate.tables import readers
    from mamushi_curate.tables.lines import Dialect
    from mamushi_curate.tables.other_columns import other_columns
    from mamushi_curate.tables.rows import needed_columns, raw_of

    path, dialect = Path(settings["path"]), Dialect.of(settings)
    needed = needed_columns(settings)
    asked = settings["other_columns"] and not unlabelled(settings)
    others = other_columns(path, needed, dialect) if asked else []
    table = readers.read_file_columns(path, [*needed, *others], dialect)
    return raw_of(table, settings, table.digests, others)
