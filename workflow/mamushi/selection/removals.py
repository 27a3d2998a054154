"""The product: which examples to remove at a budget."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError


def count(beta: float | str, n1: int) -> int:
    """Return K = floor(beta * n1), for beta as it is written: 0.7 of 10 is 7.

    Raises ``UserError`` for a budget outside [0, 1].
    """
    exact = Fraction(str(beta))
    if not 0 <= exact <= 1:
        problem = f"budget {beta} is not between 0 and 1"
        raise UserError(problem, do="give a share of the forget set")
    return int(exact * n1)


def budget_of(beta: float, scores: pa.Table) -> int:
    """Return K at the budget ``beta`` for the forget examples that ``scores`` ranks."""
    return count(beta, len(scores) - scores["rank"].null_count)


def removals(scores: pa.Table, duplicates: pa.Table, k: int) -> pa.Table:
    """List the first ``k`` forget examples by rank, in that order, as the table ``removals``.

    Each comes with the ids of its copies in ``duplicates``: to remove a text is to remove them too.
    """
    first = scores.filter(pc.less_equal(scores["rank"], k)).select(["id", "score", "rank"])
    first = first.sort_by("rank")
    copies: dict[str, list[str]] = {name: [] for name in first["id"].to_pylist()}
    collapsed = duplicates.filter(pc.is_in(duplicates["kept_id"], first["id"]))
    columns = (collapsed[name].to_pylist() for name in ("kept_id", "id"))
    for kept, copy in sorted(zip(*columns, strict=True)):
        copies[kept].append(copy)
    lists = pa.array(list(copies.values()), pa.list_(pa.string()))
    return first.append_column("copies", lists)


def digest(ids: Sequence[str]) -> str:
    """Return the SHA-256 of the ids in order of removal, each followed by a newline."""
    return hashlib.sha256("".join(f"{i}\n" for i in ids).encode()).hexdigest()
