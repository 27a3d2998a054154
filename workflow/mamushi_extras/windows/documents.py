"""What the windows of a document say of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool, Scored


def scored_by(kind: str, pool: Pool, settings: Mapping[str, Any], seed: int) -> Scored:
    """Return what a selector says of a pool; where whole documents are removed, of its documents.
    Raises what the selector raises."""
    scored: Scored = load("selector", kind).score(pool, settings, seed)
    if not pool.whole:
        return scored
    by_chance = plugin("selector", kind).literals.get("BY_CHANCE", False)
    return of_documents(scored, pool, by_chance=bool(by_chance))


def of_documents(scored: Scored, pool: Pool, *, by_chance: bool) -> Scored:
    """Give each window the score of its document: the logarithm of the mean of exp(score) of its
    windows. If one window of n is of p1, any of them, and all others are of p2, then p1/p2 of the
    document is the mean of p1/p2 of its windows.

    By chance it is that of the first window, or short documents would be drawn to either end. Of an
    order, a document takes the place of the first of its windows.
    """
    documents = pool.documents
    assert documents is not None
    own, order = scored.scores, scored.order
    _, first, size = np.unique(documents, return_index=True, return_counts=True)
    if by_chance:
        whole = own[first]
    else:
        top = np.full(len(size), -np.inf)
        np.fmax.at(top, documents, own)
        whole = top + np.log(np.bincount(documents, np.exp(own - top[documents])) / size)
    if order is not None:
        place = np.full(len(size), len(own))
        np.minimum.at(place, documents[order], np.arange(len(order)))
        order = order[np.argsort(place[documents[order]], kind="stable")]
    return replace(scored, scores=whole[documents], order=order)
