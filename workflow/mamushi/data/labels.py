"""What is known of texts beside their words' meaning: how long they are, and their labels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.data.scripts import has_unspaced, spaced
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.tables import FORGET, read_groups, read_table
from mamushi.io.vectors import ranked

_ROWS = 2**16
Ids: TypeAlias = Sequence[str] | pa.ChunkedArray
"""Ids of texts, in a list or as a table has them."""
OF_ROOMS = "label__"
"""How columns of the examples begin that are no labels, see ``Raw.labels``."""
COLUMN = "label_column_"
"""How those begin that nobody named: the other columns of a user's table."""


@dataclass(frozen=True)
class TextProperties:
    """Properties (n,) of texts: their domain, their ``words``, and how many ``copies`` were
    collapsed into each; ``labels`` by column ``label_*``, float64 with NaN, or strings with None,
    where a text has none; the same of the other ``columns`` of the table; codes of ``groups``."""

    forget: NDArray[np.bool_]
    words: NDArray[np.float64]
    copies: NDArray[np.float64]
    labels: Mapping[str, NDArray[Any]]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None


def read_texts(
    examples: str | Path, ids: Ids, duplicates: str | Path | None = None
) -> TextProperties:
    """Read what the table ``examples`` knows of the texts ``ids``, in their order, and the table
    ``duplicates`` of their copies. Raises ``UserError`` for an id that is not there."""
    tables, words = [], list[NDArray[np.float64]]()
    for group in read_groups(examples, schemas.EXAMPLES):
        # Of texts no more than their lengths are kept, and few are divided into words at once.
        rows = range(0, len(group), _ROWS)
        words += [word_counts(group["text"].slice(row, _ROWS)) for row in rows]
        tables.append(group.drop_columns(["text", "section", "log_density_ratio"]))
    table, asked = pa.concat_tables(tables), as_arrow(ids)
    places = places_of(asked, table["id"])
    if (missing := np.flatnonzero(places < 0)).size:
        problem = f"has no example {asked[int(missing[0])].as_py()!r}"
        raise UserError(problem, where=examples, do="make again what names it")
    copies = np.zeros(len(asked))
    if duplicates is not None:
        originals = read_table(duplicates, schemas.DUPLICATES, ["kept_id"])["kept_id"]
        counts = pc.value_counts(originals.drop_null())
        # What has no copies has the place -1.
        count = np.append(counts.field("counts").to_numpy(), 0)
        copies += count[places_of(asked, counts.field("values"))]
    table = table.take(pa.array(places))
    others = (*schemas.EXAMPLES.schema.names, OF_ROOMS, COLUMN)
    return TextProperties(
        forget=np.asarray(pc.equal(table["domain"], FORGET).to_numpy(), dtype=np.bool_),
        words=np.concatenate([*words, np.empty(0)])[places],
        copies=copies,
        labels={n: _values(table[n]) for n in table.column_names if not n.startswith(others)},
        columns=columns_of(table),
        groups=group_codes(table["group"]),
    )


def as_arrow(ids: Ids) -> pa.Array | pa.ChunkedArray:
    """Return ids as Arrow has them."""
    return ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())


def places_of(ids: Ids, column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return at which place of ``column`` each of ``ids`` is (n,), -1 for one that it lacks."""
    places = pc.index_in(as_arrow(ids), value_set=column)
    return np.asarray(places.fill_null(-1).to_numpy(), dtype=np.int64)


def columns_of(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Return by name what the examples have of the other columns of a user's table."""
    names = [name for name in table.column_names if name.startswith(COLUMN)]
    return {name.removeprefix(COLUMN): _values(table[name]) for name in names}


def read_columns(examples: str | Path) -> dict[str, NDArray[Any]]:
    """Read by name the other columns of a user's table, (n,) of the texts that are ranked."""
    names = [name for name in pq.read_schema(examples).names if name.startswith(COLUMN)]
    return columns_of(pa.table(ranked(Path(examples), *names)))


def group_codes(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64] | None:
    """Return the codes (n,), from 0, of the groups of texts, a text without one being a group of
    its own; None where no two texts share one."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes = array.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    return codes if len(np.unique(codes)) < len(codes) else None


def word_counts(texts: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return how many words each text has: of scripts without spaces, characters."""
    counts = np.array(_values(pc.list_value_length(pc.utf8_split_whitespace(texts))))
    not_ascii = pc.invert(pc.string_is_ascii(texts))
    rows = np.flatnonzero(not_ascii.to_numpy())
    for row, text in zip(rows.tolist(), texts.filter(not_ascii).to_pylist(), strict=True):
        if has_unspaced(text):
            counts[row] = len(spaced(text).split())
    return counts


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers and booleans as float64 with NaN, all else as strings with None."""
    if re.match("bool|u?int|float|double|halffloat", str(column.type)):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
