"""What removals achieve by the exact log-density ratio, of data that have one.

By an estimated ratio no region beats that of the estimate itself, whatever the truth is. By the
exact one none beats the oracle's (Proposition "optimal selection"). A removal by chance is no
region: near a budget of 1 it leaves a thin share of all of p1, which can harm p2 less than any
region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.data.labels import Ids, places_of, read_labels
from mamushi.evidence.frontier import Frontier, RemovalOrder
from mamushi.io.domains import FORGET
from mamushi.io.vectors import ranked
from mamushi.selection.arrays import Doubles, Mask

TRUE_DOMAIN = "label_true_domain"
"""The column of the examples that says from which density a text with a wrong label was drawn."""


def read_truth(examples: str | Path, ids: Ids) -> Doubles | None:
    """Return the exact log ratio (n,) in nats of the texts ``ids``, in their order; None for data
    that have none. Where labels are wrong it is that of the densities of what is labelled."""
    columns = ranked(Path(examples), "log_density_ratio")
    if columns["log_density_ratio"].null_count:
        return None
    texts = read_labels(examples, ids, do="delete the scores and score again")
    log_ratio = columns["log_density_ratio"].to_numpy()[places_of(ids, columns["id"])]
    if TRUE_DOMAIN not in texts.labels:
        return np.asarray(log_ratio)
    return ratio_of_labels(log_ratio, texts.forget, texts.labels[TRUE_DOMAIN] == FORGET)


def ratio_of_labels(log_ratio: Doubles, forget: Mask, drawn_forget: Mask) -> Doubles:
    """Return the exact log ratio (n,) of what is labelled forget and retain, some of it wrongly.

    ``log_ratio`` (n,) is l = log p1/p2 of the densities that texts are drawn from, ``drawn_forget``
    (n,) whether it was p1. With shares a and c of wrong labels among ``forget`` and the others:

        log( ((1 - a) e^l + a) / ((1 - c) + c e^l) ).
    """
    wrong = np.array([1.0 - drawn_forget[forget].mean(), drawn_forget[~forget].mean()])
    with np.errstate(divide="ignore"):
        (in_forget, in_retain), (right_forget, right_retain) = np.log(wrong), np.log1p(-wrong)
    labelled_forget = np.logaddexp(right_forget + log_ratio, in_forget)
    return np.asarray(labelled_forget - np.logaddexp(right_retain, in_retain + log_ratio))


def achieved(
    rows: Sequence[Mapping[str, Any]],
    rankings: Mapping[str, RemovalOrder],
    log_ratio: Doubles,
    forget: Mask,
) -> list[dict[str, Any]]:
    """Return the ``rows`` of the table ``frontier`` with ``removal_true`` and
    ``preservation_true``, by the exact ``log_ratio`` (n,) of texts of which some are ``forget``.

    Both are of the forget texts that go, since p2 = p1 e^-l is exact here: so that in these texts,
    too, no region beats the oracle's.
    """
    l1, l2, pi1 = log_ratio[forget], log_ratio[~forget], float(forget.mean())
    exact: dict[tuple[str, int], list[float]] = {}
    for name, order in rankings.items():
        curve = Frontier(RemovalOrder(order.first, order.by_chance, None), l1, l2, pi1)
        counts = [row["removed"] for row in rows if row["selector"] == name]
        points = np.transpose(curve.at(np.array(counts))).tolist()
        exact |= zip([(name, count) for count in counts], points, strict=True)
    names = ("removal_true", "preservation_true")
    return [
        {**row, **dict(zip(names, exact[row["selector"], row["removed"]], strict=True))}
        for row in rows
    ]
