"""What is known of texts beside their words' meaning: how long they are, and their labels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.scripts import space_words
from mamushi.errors import other_examples
from mamushi.io import schemas
from mamushi.io.tables import FORGET, read_groups, read_table

Ids: TypeAlias = Sequence[str] | pa.ChunkedArray
OF_ROOMS, COLUMN = "label__", "label_column_"
"""How columns of the examples begin that are no labels, see ``Raw.labels``, and those that nobody
named, the other columns of a user's table."""


@dataclass(frozen=True)
class TextProperties:
    """Properties (n,) of texts: how many ``words``, by ``space_words``, and ``copies`` that
    were collapsed into them; ``labels`` and other ``columns`` of their table, float64 with NaN or
    strings with None; codes of ``groups``."""

    forget: NDArray[np.bool_]
    words: NDArray[np.float64]
    copies: NDArray[np.float64]
    labels: Mapping[str, NDArray[Any]]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None


def read_texts(examples: Path, ids: Ids, duplicates: Path | None = None) -> TextProperties:
    """Read what ``examples`` and ``duplicates`` know of the texts ``ids``, in their order. Raises
    ``UserError`` for an id that is not there."""
    tables, words = [], list[int]()
    for group in read_groups(examples, schemas.EXAMPLES):
        # Of texts no more than their lengths are kept.
        for chunk in group["text"].chunks:
            words += [len(space_words(text).split()) for text in chunk.to_pylist()]
        tables.append(group.drop_columns(["text", "section", "log_density_ratio"]))
    table = pa.concat_tables(tables)
    if ((places := places_of(ids, table["id"])) < 0).any():
        raise other_examples(examples, "what names them")
    copies = np.zeros(len(ids))
    if duplicates is not None:
        originals = read_table(duplicates, schemas.DUPLICATES, ["kept_id"])["kept_id"].to_pandas()
        copies += originals.value_counts().reindex(np.asarray(ids), fill_value=0).to_numpy()
    table = table.take(pa.array(places))
    others = (*schemas.EXAMPLES.schema.names, OF_ROOMS)
    labels = {n: _label_values(table[n]) for n in table.column_names if not n.startswith(others)}
    columns = {n: labels.pop(n) for n in [*labels] if n.startswith(COLUMN)}
    return TextProperties(
        forget=np.asarray(pc.equal(table["domain"], FORGET).to_numpy(), dtype=np.bool_),
        words=np.array(words, dtype=np.float64)[places],
        copies=copies,
        labels=labels,
        columns={name.removeprefix(COLUMN): values for name, values in columns.items()},
        groups=group_codes(table["group"]),
    )


def places_of(ids: Ids, column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return at which place of ``column`` each of ``ids`` is (n,), -1 for one that it lacks."""
    places = pc.index_in(ids, value_set=column)
    return np.asarray(places.fill_null(-1).to_numpy(), dtype=np.int64)


def group_codes(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64] | None:
    """Return the codes (n,) of the groups of texts, of which a text without one is its own; None
    where no two texts share one."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes = array.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    return codes if len(np.unique(codes)) < len(codes) else None


def _label_values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers and booleans as float64 with NaN, all else as strings with None."""
    if re.match("bool|u?int|float|double|halffloat", str(column.type)):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
