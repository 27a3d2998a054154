"""What a removal list is expected to do, and a manifest of it that others can check.

It stands apart from the lists in ``removals``, so that a change of how the density ratio is read
changes no list, and retrains nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.artifacts.tables import FORGET
from mamushi.evidence.frontier import Frontier, frontier
from mamushi.selection.removals import digest, removals


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
