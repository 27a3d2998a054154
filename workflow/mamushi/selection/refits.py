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

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.io import schemas
from mamushi.io.tables import read_table
from mamushi.running.progress import Progress
from mamushi.selection.crossfit import derive_seed
from mamushi.selection.folds import count_units
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.scores import score_pool, scored_of, scores_table

WHOLE_REFIT = "whole"
HALVES = ("half_a", "half_b")

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
        smaller = min(count_units(of, pool.groups) for of in (pool.forget, ~pool.forget))
        if settings.get("folds") and smaller >= IN_A_FOLD * settings["folds"]:
            pairs = product(range(halves), enumerate(HALVES))
            work += [(part, i, replace(pool, half=half)) for i, (half, part) in pairs]
    results = list[Refit]()
    with Progress(len(work), "refits", "refit") as progress:
        for part, number, again in work:
            scored = score_pool(kind, again, settings, refit_seed(seed, number))
            results.append((part, number, scored))
            progress.advance()
    return results


def refit_seed(seed: int, number: int) -> int:
    """Derive the seed of a refit, independent of ``seed`` itself."""
    return derive_seed(seed, _AGAIN, number)


def refits_table(pool: Pool, results: Sequence[Refit]) -> pa.Table:
    """Return the table ``refits`` of a pool, in its order within each."""
    schema, n = schemas.REFITS.schema, len(pool.ids)
    tables = [schema.empty_table()]
    for part, number, scored in results:
        table = scores_table(pool, scored).append_column("part", pa.repeat(part, n))
        table = table.append_column("refit", pa.repeat(number, n))
        tables.append(table.select(schema.names).cast(schema))
    return pa.concat_tables(tables)


def read_refits(path: str | Path | None) -> list[Refit]:
    """Read a table ``refits``; none where there is no table, because nothing was refitted."""
    if path is None:
        return []
    table = read_table(path, schemas.REFITS, ["refit", "part", "score", "fold"])
    refits = []
    for key in table.group_by(["part", "refit"], use_threads=False).aggregate([]).to_pylist():
        rows = (pc.field("part") == key["part"]) & (pc.field("refit") == key["refit"])
        refits.append((key["part"], key["refit"], scored_of(table.filter(rows))))
    return refits
