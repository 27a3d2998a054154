"""Several estimators of the log-density ratio as one, and the choice among them, without a look at
what is scored.

Within each fold of the cross-fitting the training examples are cross-fitted once more: every member
scores them out of fold. From those scores alone come the weights of the combination, the losses by
which one is chosen, and the calibration. Then each member that is needed is fitted on all training
examples and scores the held-out ones. So no label of a fold has a part in any of its scores:
neither in a member, nor in the weights, nor in the choice (Wolpert, 1992; van der Laan et al.,
2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.crossfit import Fit, Task, derive_seed
from mamushi.selection.folds import balanced_weights, stratified_folds
from mamushi.selection.linear import logistic

Doubles = NDArray[np.float64]

INNER, FINAL = 2**32 - 4, 2**32 - 5
"""Set the seeds of the inner folds and of the last fits apart from those of other draws."""
VARIANCE = 1.0
"""Of a weight, per standard deviation of the member's logits, before the labels are seen."""


@dataclass(frozen=True)
class Member:
    """An estimator by name; ``estimate`` gives the held-out logits of each task, in their order,
    and is told whether they are the last ones, which score, or those of inner folds, which weigh.
    """

    name: str
    estimate: Callable[[Sequence[Task], bool], Sequence[Doubles]]


@dataclass(frozen=True)
class Candidate:
    """What may be chosen: some of the members, by their places."""

    name: str
    members: tuple[int, ...]


def candidates(members: Sequence[Member]) -> list[Candidate]:
    """Each member alone, in their order, and all of them: from the simplest on."""
    alone = [Candidate(member.name, (i,)) for i, member in enumerate(members)]
    return [*alone, Candidate("stack", tuple(range(len(members))))]


def estimate_stack(
    task: Task,
    members: Sequence[Member],
    folds: int,
    among: Sequence[Candidate],
    also: Candidate | None = None,
) -> tuple[Fit, Doubles | None]:
    """Held-out logits of the candidate that is chosen ``among`` them, and those of ``also``.

    Chosen is the first whose weighted log loss on the training examples, out of fold, is within
    one standard error of the least: a standard error of their difference, text by text. ``details``
    say which (``chosen``), the ``losses`` in nats, and of the chosen one the ``weights`` of its
    members, per standard deviation of each. Raises what the members raise, and ``UserError`` when
    the training examples are too few for the inner ``folds``.
    """
    forget = task.forget[task.train]
    inner = stratified_folds(forget, folds, derive_seed(task.seed, INNER))
    needed = sorted({i for one in [*among, *([also] if also else [])] for i in one.members})
    # Standardised by all training examples of the fold, which takes no label: once for all of them.
    tasks = [
        replace(
            task,
            train=task.train[inner != i],
            held=task.train[inner == i],
            seed=derive_seed(task.seed, INNER, i),
        )
        for i in range(folds)
    ]
    scores = np.full((len(forget), len(members)), np.nan)
    for m in needed:
        for i, own in enumerate(members[m].estimate(tasks, False)):
            scores[inner == i, m] = own
    losses = {
        one.name: _losses(scores[:, one.members], forget, inner, folds)
        for one in (among if len(among) > 1 else ())
    }
    chosen = _choose(among, losses)
    last = replace(task, seed=derive_seed(task.seed, FINAL))
    wanted = sorted({*chosen.members, *(also.members if also else ())})
    found = np.full((len(task.held), len(members)), np.nan)
    for m in wanted:
        (found[:, m],) = members[m].estimate([last], True)
    logits, weights = _combined(scores[:, chosen.members], forget, found[:, chosen.members])
    details: dict[str, Any] = {
        "chosen": chosen.name,
        "weights": dict(zip((members[m].name for m in chosen.members), weights, strict=True)),
        "losses": {name: float(loss.mean()) for name, loss in losses.items()},
    }
    if also is None:
        return (logits, details), None
    beside, _ = _combined(scores[:, also.members], forget, found[:, also.members])
    return (logits, details), beside


def _choose(among: Sequence[Candidate], losses: dict[str, Doubles]) -> Candidate:
    if len(among) == 1:
        return among[0]
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    for one in among:
        more = losses[one.name] - best
        if more.mean() <= more.std(ddof=1) / np.sqrt(len(more)):
            return one
    raise AssertionError("the best is within an error of itself")


def _losses(
    scores: Doubles, forget: NDArray[np.bool_], inner: NDArray[np.int16], folds: int
) -> Doubles:
    """The weighted log loss (n,) of each text, by a combination fitted without its inner fold."""
    logits = np.empty(len(forget))
    for i in range(folds):
        own = inner == i
        logits[own] = _combined(scores[~own], forget[~own], scores[own])[0]
    signed = np.where(forget, logits, -logits)
    return balanced_weights(forget) * np.logaddexp(0.0, -signed)


def _combined(
    scores: Doubles, forget: NDArray[np.bool_], held: Doubles
) -> tuple[Doubles, list[float]]:
    """Calibrated logits of ``held`` (m, k) by a logistic regression on ``scores`` (n, k), and its
    weights per standard deviation of each column."""
    mean, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    ends = np.vstack([(held - mean) / scale, np.zeros((1, held.shape[1])), np.eye(held.shape[1])])
    found = logistic((scores - mean) / scale, forget, VARIANCE)(ends)
    intercept, at_one = found[len(held)], found[len(held) + 1 :]
    return found[: len(held)], [float(each - intercept) for each in at_one]
