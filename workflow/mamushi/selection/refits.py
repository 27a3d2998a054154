"""A selector's scores made again: what of a ranking is the texts', and what is chance.

A *whole* refit has another seed, as a second complete run would. Of a cross-fitted selector there
are *halves* with its folds, fitted on one stratified half of each fold's training examples and on
the other: of a text that both hold out they are independent estimates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.io import schemas
from mamushi.io.tables import read_groups
from mamushi.running.progress import Progress
from mamushi.selection.crossfit import derive_seed
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.scores import name_columns, score_columns, score_pool, scored_of

WHOLE_REFIT = "whole"
HALVES = ("half_a", "half_b")

COLUMNS = ("refit", "part", "score", "fold")
"""Of the table, all but whose scores they are."""

_AGAIN = 2**32 - 3  # Sets the seeds of refits apart from those of folds and networks.
IN_A_FOLD = 4  # Examples, or groups, of a domain from which halves of the others can be fitted.
Refit = tuple[str, int, Scored]  # Its part, its number from 0, and its scores.


def make_refits(
    pool: Pool,
    kind: str,
    settings: Mapping[str, Any],
    seed: int,
    whole: int,
    halves: int,
    bases: Sequence[Refit] = (),
) -> list[Refit]:
    """Make ``whole`` refits of a selector and, where it cross-fits, ``halves`` pairs of halves.

    A pair has the folds of the whole refit of its number; there is none where a domain has fewer
    than ``IN_A_FOLD`` examples, or groups, for each fold. A selector that derives from another one
    is derived from each of ``bases``, the refits of that one.
    """
    work = [(part, number, replace(pool, base=base)) for part, number, base in bases]
    if not work:
        work = [(WHOLE_REFIT, i, pool) for i in range(whole)]
        codes = np.arange(len(pool.ids)) if pool.groups is None else pool.groups
        smaller = min(len(np.unique(codes[domain])) for domain in (pool.forget, ~pool.forget))
        if settings.get("folds") and smaller >= IN_A_FOLD * settings["folds"]:
            pairs = product(range(halves), enumerate(HALVES))
            work += [(part, i, replace(pool, half=half)) for i, (half, part) in pairs]
    results = []
    with Progress(len(work), "refits", "refit") as progress:
        for part, number, again in work:
            scored = score_pool(kind, again, settings, refit_seed(seed, number))
            results.append((part, number, scored))
            progress.advance()
    return results


def refit_seed(seed: int, number: int) -> int:
    """Derive the seed of a refit, independent of ``seed`` itself."""
    return derive_seed(seed, _AGAIN, number)


def as_table(pool: Pool, results: Sequence[Refit], schema: pa.Schema) -> pa.Table:
    """Put refits of ``pool`` into the table ``refits``, in the order of the pool within each."""
    n, tables = len(pool.ids), []
    names = name_columns(pool) if results else {}
    for part, number, scored in results:
        labels = {"refit": pa.array(np.full(n, number, np.int16)), "part": pa.repeat(part, n)}
        columns = names | score_columns(scored) | labels
        tables.append(pa.table(columns).select(schema.names).cast(schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def read_refits(path: str | Path | None) -> list[Refit]:
    """Read a table ``refits``, a row group at a time; none where there is no table, because nothing
    was refitted."""
    pieces: dict[tuple[str, int], list[pa.Table]] = {}
    for table in [] if path is None else read_groups(path, schemas.REFITS, COLUMNS):
        keys = table.group_by(["part", "refit"], use_threads=False).aggregate([]).to_pylist()
        for part, number in ((key["part"], key["refit"]) for key in keys):
            rows = (pc.field("part") == part) & (pc.field("refit") == number)
            pieces.setdefault((part, number), []).append(table.filter(rows))
    return [(*key, scored_of(pa.concat_tables(tables))) for key, tables in pieces.items()]
