"""Tables of vectors that are made piece by piece: as blocks of texts, or as shards on many nodes.

What of a table is in memory at a time is a block. A shard holds the vectors of some of the texts,
by the row that each has in the table; it lies beside the others until they are put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts import schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import INFERENCE, read_groups, read_metadata, read_table, writing
from mamushi.errors import UserError

BLOCK = 131072
"""Texts: eight row groups of a table of vectors, 1 GiB at a width of 4,096."""

Piece = tuple[NDArray[np.int64], Mapping[str, NDArray[np.float16]]]
"""Rows of the table (m,), ascending and of one block, and their vectors (m, width) by column."""


def ranked(examples: Path, *further: str) -> dict[str, pa.Array]:
    """The columns ``id`` and ``domain``, and ``further`` ones, of the texts that have a vector."""
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section", *further])
    found = table.filter(pc.equal(table["section"], INFERENCE))
    return {name: found[name].combine_chunks() for name in ("id", "domain", *further)}


def write_pieces(
    path: Path,
    kind: Table,
    pieces: Iterable[Piece],
    texts: Mapping[str, pa.Array],
    metadata: Mapping[str, Any],
    shard: str | None = None,
    *,
    beside: bool = False,
) -> None:
    """Write a table of vectors whose ``pieces`` are its blocks, or a ``shard`` of it (``2-of-8``)
    of its own. ``texts`` are the table's columns ``id`` and ``domain``. Of several processes, which
    all take part in each piece, those ``beside`` the first write nothing."""
    if beside:
        for _ in pieces:
            pass
        return
    if shard is None:
        with writing(path, kind, metadata=metadata) as write:
            for rows, vectors in pieces:
                write(
                    {name: of.take(pa.array(rows)) for name, of in texts.items()} | _arrays(vectors)
                )
        return
    with writing(path, schemas.SHARD, metadata={**metadata, "shard": shard}) as write:
        empty = True
        for rows, vectors in pieces:
            write({"row": rows, **_arrays(vectors)})
            empty = False
        if empty:
            # Of a dataset with fewer batches than shards.
            write({"row": np.empty(0, np.int64)})


def join(
    path: Path,
    kind: Table,
    shards: Sequence[Path],
    texts: Mapping[str, pa.Array],
    origin: Mapping[str, Any],
    *,
    beside: bool = False,
) -> None:
    """Put the ``shards`` of a table together: byte by byte what one job would have written.

    Raises ``UserError`` for a shard of another ``origin``, by settings, inputs or versions, and
    when they do not hold every text. Nothing is done ``beside`` the first process.
    """
    if beside:
        return
    told = {each: read_metadata(each) for each in shards}
    for each, found in told.items():
        if odd := [name for name in origin if found.get(name) != origin[name]]:
            raise UserError(
                f"is a shard that was made with other {' and '.join(odd)}",
                where=each,
                do="delete it and run again",
            )
    # A row group is of one block, and those of later shards are of later blocks.
    ordered = sorted(shards, key=lambda each: int(told[each].pop("shard").partition("-")[0]))
    groups = (group for each in ordered for group in read_groups(each, schemas.SHARD) if len(group))
    waiting, n = next(groups, None), len(texts["id"])
    with writing(path, kind, metadata=told[ordered[0]]) as write:
        for start in range(0, n, BLOCK):
            block = slice(start, min(start + BLOCK, n))
            vectors: dict[str, NDArray[np.float16]] = {}
            seen = np.zeros(block.stop - start, dtype=bool)
            while waiting is not None and waiting["row"][0].as_py() < block.stop:
                rows = waiting["row"].to_numpy() - start
                seen[rows] = True
                for name in waiting.column_names[1:]:
                    found = waiting[name].combine_chunks()
                    width = found.type.list_size
                    if name not in vectors:
                        vectors[name] = np.empty((len(seen), width), np.float16)
                    vectors[name][rows] = found.flatten().to_numpy().reshape(-1, width)
                waiting = next(groups, None)
            if not seen.all():
                raise UserError(
                    f"{int((~seen).sum())} texts are in none of the {len(shards)} shards",
                    where=path,
                    do="delete the shards and run again",
                )
            write({name: of[block] for name, of in texts.items()} | _arrays(vectors))


def _arrays(vectors: Mapping[str, NDArray[np.float16]]) -> dict[str, pa.Array]:
    return {
        name: pa.FixedSizeListArray.from_arrays(pa.array(each.reshape(-1)), each.shape[1])
        for name, each in vectors.items()
    }
