"""The product: which examples to remove at a budget."""

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.digests import text_sha
from mamushi.io.tables import read_groups


def budget_size(beta: float | str, n1: int) -> int:
    """Return K = floor(beta * n1), for beta as it is written: 0.7 of 10 is 7.

    Raises ``UserError`` for a budget outside [0, 1].
    """
    if not 0 <= (exact := Fraction(str(beta))) <= 1:
        raise UserError(f"budget {beta} is not between 0 and 1")
    return int(exact * n1)


def budget_of(beta: float, scores: pa.Table) -> int:
    """Return K at the budget ``beta`` for the forget examples that ``scores`` ranks."""
    return budget_size(beta, len(scores) - scores["rank"].null_count)


def share_of(k: int, n1: int) -> str:
    """Return the shortest budget, as file names have it, whose list has K texts of n1. Raises
    ``UserError`` where none has."""
    for decimals in range(2, 7) if 0 < k < n1 else ():
        beta = f"{math.ceil(Fraction(k * 10**decimals, n1)) / 10**decimals:.{decimals}f}"
        if budget_size(beta, n1) == k:
            return beta
    raise UserError(f"no list has {k:,} of {n1:,} forget texts", do="give a share")


def removal_list(scores: pa.Table, duplicates: pa.Table, k: int) -> pa.Table:
    """List the first ``k`` forget examples by rank, in that order, as the table ``removals``.

    Each comes with the ids of its copies in ``duplicates``, and the digests of their texts: to
    remove a text is to remove them too.
    """
    columns = ["id", "score", "rank"]
    first = scores.filter(pc.less_equal(scores["rank"], k)).select(columns).sort_by("rank")
    copies: dict[str, list[dict[str, str]]] = {name: [] for name in first["id"].to_pylist()}
    collapsed = duplicates.filter(pc.is_in(duplicates["kept_id"], first["id"]))
    for row in collapsed.sort_by("id").to_pylist():
        copies[row["kept_id"]].append(row)
    for name, column in (("copies", "id"), ("copies_sha256", "text_sha256")):
        lists = [[row[column] for row in rows] for rows in copies.values()]
        first = first.append_column(name, pa.array(lists, pa.list_(pa.string())))
    return first


def read_texts_of(
    examples: str | Path, ids: Sequence[str], of: Callable[[str], str] = str
) -> list[str]:
    """Read the texts of ``ids``, in their order, or what ``of`` makes of each. Raises ``UserError``
    for an id that the table ``examples`` lacks."""
    read: dict[str, str] = {}
    listed = pa.array(ids, pa.string())
    for group in read_groups(examples, schemas.EXAMPLES, ["id", "text"]):
        rows = group.filter(pc.is_in(group["id"], listed))
        read |= zip(rows["id"].to_pylist(), map(of, rows["text"].to_pylist()), strict=True)
    if missing := [name for name in ids if name not in read]:
        raise UserError(f"has no example {missing[0]!r}, which is ranked", where=examples)
    return [read[name] for name in ids]


def text_digests(examples: str | Path, ids: Sequence[str]) -> list[str]:
    """Read the digests of the texts ``ids``, in their order."""
    return read_texts_of(examples, ids, text_sha)


def digest_of_ids(ids: Sequence[str]) -> str:
    """Return the SHA-256 of ids, or digests of texts, in order of removal, each followed by a
    newline."""
    return hashlib.sha256("".join(f"{i}\n" for i in ids).encode()).hexdigest()
