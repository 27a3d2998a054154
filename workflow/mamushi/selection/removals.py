"""The product: which examples to remove at a budget, and a manifest that others can check."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.artifacts import FORGET
from mamushi.errors import UserError
from mamushi.selection.frontier import preservation, preservation_by_importance, removal


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


def expected(
    scores: pa.Table, ratio: pa.Table, k: int, by_chance: bool
) -> dict[str, float | str | None]:
    """Removal KL(p1||p_-S) and preservation KL(p2||p_-S) in nats, from ``ratio``'s scores as l.

    S holds the first ``k`` forget examples, and the retain examples that score no lower than the
    last of them (``preservation_form``: threshold). A selector without retain scores is measured by
    the importance form (importance); one that removes ``by_chance`` removes the same share of p1
    everywhere, and so do the two ends of the frontier (share). The tables hold the same examples in
    one order. Raises ``UserError`` when ``ratio`` lacks a score.
    """
    if ratio["score"].null_count:
        raise UserError(
            "the selector that estimates the log-density ratio has no score for some examples",
            do="set removal.ratio to one that scores both domains, such as mamushi",
        )
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    log_ratio = ratio["score"].to_numpy()
    l1, l2 = log_ratio[forget], log_ratio[~forget]
    n1, n2 = len(l1), len(l2)
    pi1, beta = n1 / (n1 + n2), k / n1
    score = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    rank = np.asarray(scores["rank"].to_numpy(), dtype=np.float64)[forget]
    kept = np.full(n1, 1 - beta) if by_chance else (rank > k).astype(np.float64)
    if by_chance or k in (0, n1):
        preserved, form = preservation(l2, np.full(n2, 1 - beta), pi1, beta), "share"
    elif np.isnan(score[~forget]).any():
        preserved, form = preservation_by_importance(l1, l2, kept, pi1), "importance"
    else:
        threshold = score[forget][rank <= k].min()
        outside = (score[~forget] < threshold).astype(np.float64)
        preserved, form = preservation(l2, outside, pi1, beta), "threshold"
    return {
        "removal": removal(l1, kept, pi1),
        "preservation": preserved,
        "preservation_form": form,
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
            "at_this_budget": expected(scores, ratio, k, by_chance),
            "nothing_removed": expected(scores, ratio, 0, by_chance),
            "all_removed": expected(scores, ratio, n1, by_chance),
        },
    }
