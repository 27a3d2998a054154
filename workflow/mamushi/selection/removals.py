"""The product: which examples to remove at a budget, and a manifest that others can check."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts import FORGET
from mamushi.errors import UserError
from mamushi.selection.frontier import Frontier, Ranking, ranking


def count(beta: float | str, n1: int) -> int:
    """K = floor(beta * n1), for beta as it is written: 0.7 of 10 is 7, not the floor of 6.99...

    Raises ``UserError`` for a budget outside [0, 1].
    """
    exact = Fraction(str(beta))
    if not 0 <= exact <= 1:
        raise UserError(
            f"budget {beta} is not between 0 and 1", do="give a share of the forget set"
        )
    return int(exact * n1)


def budget_of(beta: float, scores: pa.Table) -> int:
    """K at the budget ``beta`` for the forget examples that ``scores`` ranks."""
    return count(beta, len(scores) - scores["rank"].null_count)


def removals(scores: pa.Table, duplicates: pa.Table, k: int) -> pa.Table:
    """The first ``k`` forget examples by rank, in that order, as the table ``removals``.

    Each comes with the ids of its copies in ``duplicates``: to remove a text is to remove them too.
    """
    chosen = scores.filter(pc.less_equal(scores["rank"], k)).select(["id", "score", "rank"])
    chosen = chosen.sort_by("rank")
    copies: dict[str, list[str]] = {name: [] for name in chosen["id"].to_pylist()}
    collapsed = duplicates.filter(pc.is_in(duplicates["kept_id"], chosen["id"]))
    columns = (collapsed[name].to_pylist() for name in ("kept_id", "id"))
    for kept, copy in sorted(zip(*columns, strict=True)):
        copies[kept].append(copy)
    lists = pa.array(list(copies.values()), pa.list_(pa.string()))
    return chosen.append_column("copies", lists)


def digest(ids: Sequence[str]) -> str:
    """SHA-256 of the ids in UTF-8, each followed by a newline, in the order of removal."""
    return hashlib.sha256("".join(f"{i}\n" for i in ids).encode()).hexdigest()


def frontier(scores: pa.Table, ratio: pa.Table, by_chance: bool) -> Frontier:
    """The frontier of a selector's ``scores``, with ``ratio``'s scores as the log-density ratio.

    The tables hold the same examples in one order. Raises ``UserError`` when they do not, or when
    ``ratio`` lacks a score.
    """
    if ratio["score"].null_count:
        raise UserError(
            "the selector that estimates the log-density ratio has no score for some examples",
            do="set removal.ratio to one that scores both domains, such as mamushi",
        )
    if not scores["id"].equals(ratio["id"]):
        raise UserError(
            "the scores and those that estimate the log-density ratio hold other examples",
            do="delete both and score again",
        )
    return Frontier(*along(scores, ratio["score"].to_numpy(), by_chance))


def along(
    scores: pa.Table, log_ratio: NDArray[np.float64], by_chance: bool
) -> tuple[Ranking, NDArray[np.float64], NDArray[np.float64], float]:
    """A selector's ranking, the ``log_ratio`` (n,) of its examples by domain, and pi1 = n1/n."""
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    score = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    rank = np.asarray(scores["rank"].to_numpy(), dtype=np.float64)
    ranks = ranking(score[forget], rank[forget], score[~forget], by_chance)
    return ranks, log_ratio[forget], log_ratio[~forget], float(forget.mean())


def expected(
    scores: pa.Table, ratio: pa.Table, k: int, by_chance: bool
) -> dict[str, float | str | None]:
    """Removal KL(p1||p_-S) and preservation KL(p2||p_-S) in nats, from ``ratio``'s scores as l.

    S holds the first ``k`` forget examples, and of the retain examples what ``Frontier`` says for
    the ``preservation_form``: threshold, importance or share. Raises ``UserError`` as ``frontier``.
    """
    return _expected(frontier(scores, ratio, by_chance), k)


def _expected(curve: Frontier, k: int) -> dict[str, float | str | None]:
    counts = np.array([k])
    removed, preserved = curve.at(counts)
    return {
        "removal": float(removed[0]),
        "preservation": float(preserved[0]),
        "preservation_form": curve.forms(counts)[0],
    }


def manifest(
    scores: pa.Table,
    ratio: pa.Table,
    duplicates: pa.Table,
    k: int,
    by_chance: bool,
    named: dict[str, Any],
) -> dict[str, Any]:
    """What a trainer or a verifier needs to know about the removal of the first ``k`` examples.

    ``copies`` counts the texts that go with them; ``cross_posts`` the texts of the dataset that
    stood in both domains: no example stands for them, so they are in no list. ``named`` (dataset,
    model, seed, selector, provenance, ...) is added as it is.
    """
    chosen = removals(scores, duplicates, k)
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    n1, n2 = int(forget.sum()), int((~forget).sum())
    curve = frontier(scores, ratio, by_chance)
    return {
        **named,
        "n_forget": n1,
        "n_retain": n2,
        "removed": k,
        "copies": sum(map(len, chosen["copies"].to_pylist())),
        "cross_posts": duplicates["kept_id"].null_count,
        "threshold": float(chosen["score"][-1].as_py()) if k else None,
        "ids_sha256": digest(chosen["id"].to_pylist()),
        "ids_sha256_of": "the ids by rank, without copies, in UTF-8, each followed by a newline",
        "expected": {
            "unit": "nats",
            "at_this_budget": _expected(curve, k),
            "nothing_removed": _expected(curve, 0),
            "all_removed": _expected(curve, n1),
        },
    }
