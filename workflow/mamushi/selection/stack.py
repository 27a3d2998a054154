"""Several estimators of the log-density ratio as one, and the choice among them, without a look at
what is scored: ``mamushi_stack`` and ``auto``.

Within each fold of the cross-fitting the training examples are cross-fitted once more: every member
scores them out of fold. From those scores alone come the weights of the combination, the losses by
which one is chosen, and the calibration. Then each member that is needed is fitted on all training
examples and scores the held-out ones. So no label of a fold has a part in any of its scores:
neither in a member, nor in the weights, nor in the choice (Wolpert, 1992; van der Laan et al.,
2007).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.threads import side_by_side
from mamushi.selection.crossfit import Fit, Task, cross_fit_together, derive_seed, plain_mean
from mamushi.selection.folds import balanced_weights, stratified_folds
from mamushi.selection.linear import estimate_layers, estimate_ngrams, logistic, ngrams
from mamushi.selection.metrics import auc_difference
from mamushi.selection.pool import Pool, Scored

Doubles = NDArray[np.float64]

INNER, FINAL = 2**32 - 4, 2**32 - 5
"""Set the seeds of the inner folds and of the last fits apart from those of other draws."""
VARIANCE = 1.0
"""Of a weight, per standard deviation of the member's logits, before the labels are seen."""

DEPTHS_READ: dict[str, Any] = {
    "type": "array",
    "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "uniqueItems": True,
    "default": [0.25, 0.5, 0.75, 1],
    "description": "Layers by the share of the model's blocks before them, a logistic regression "
    "on each; 1 is the embedding that all selectors share.",
}
LEXICAL: dict[str, Any] = {
    "type": "boolean",
    "default": True,
    "description": "A logistic regression on n-grams of words and characters is a member.",
}
INNER_NETWORKS: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "default": 2,
    "description": "As many of them in each fold within a fold, where they are weighed.",
}
REPEATS: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "default": 4,
    "description": "Cross-fittings, each with folds of its own, whose logits are averaged.",
}
"""Settings of ``mamushi_stack`` and ``auto``."""


@dataclass(frozen=True)
class Member:
    """An estimator by name; ``estimate`` gives the held-out logits of each task, in their order,
    and is told whether they are the last ones, which score, or those of inner folds, which weigh.
    """

    name: str
    estimate: Callable[[Sequence[Task], bool], Sequence[Doubles]]


def members_of(pool: Pool, settings: Mapping[str, Any]) -> list[Member]:
    """Return the members that the settings ask for: networks first, then layers, then words.

    Raises ``UserError`` for a depth at which the texts are not embedded, and when there is none.
    """

    def each(name: str, estimate: Callable[[Task], Fit]) -> Member:
        return Member(name, lambda tasks, _: [estimate(task)[0] for task in tasks])

    prior = settings["prior"]
    found = [_networks(settings)] if settings["networks"] else []
    # The last layer first: it is what the paper reads.
    for depth in sorted(settings["depths"], reverse=True):
        layers = [pool.at(depth)]
        found.append(
            each(f"linear_{depth:g}", partial(estimate_layers, layers=layers, prior=prior))
        )
    if settings["lexical"]:
        counts = ngrams(pool)
        found.append(each("lexical", partial(estimate_ngrams, counts=counts, prior=prior)))
    if not found:
        raise UserError("no member", do="give it depths, lexical: true, or networks")
    return found


def _networks(settings: Mapping[str, Any]) -> Member:
    """Return the member that averages networks, each first brought to mean 0 and standard deviation
    1 over what it scores: how far a network's logits spread depends on when its training stopped
    more than on the texts. The networks of all repeats are as many as the selector has that lends
    them; in its place may be its name, for its defaults."""
    from mamushi.selection.mlp import estimate_mlp

    of = settings["networks"]
    lent = plugin("selector", of).defaults if isinstance(of, str) else of
    final_networks = -(-lent["seeds_averaged"] // settings["repeats"])

    def estimate(tasks: Sequence[Task], final: bool) -> list[Doubles]:
        number = final_networks if final else settings["inner_networks"]
        many = [
            replace(task, seed=derive_seed(task.seed, i)) for task in tasks for i in range(number)
        ]
        logits = [(one - one.mean()) / (one.std() or 1.0) for one, _ in estimate_mlp(many, lent)]
        return [np.mean(logits[i : i + number], axis=0) for i in range(0, len(many), number)]

    return Member("mamushi", estimate)


def stacked(pool: Pool, settings: Mapping[str, Any], seed: int, *, choose: bool) -> Scored:
    """Cross-fit the combination of all members, or what is chosen in each fold among each member by
    itself and all of them.

    ``details`` are those of ``cross_fit_together`` with the mean ``weights`` of the members. Of a
    choice they also say, and so does a line, what was ``chosen`` and the ``gain`` in AUC over the
    first member. Raises what ``members_of`` and ``estimate_stack`` raise.
    """
    members = members_of(pool, settings)
    folds, repeats = settings["folds"], settings["repeats"]
    among = {"stack": range(len(members))}
    if choose:
        # From the simplest on.
        among = {member.name: range(i, i + 1) for i, member in enumerate(members)} | among
    # By the task's seed, because tasks end in any order.
    of_first: dict[int, tuple[Task, Doubles]] = {}

    def estimate(task: Task) -> Fit:
        fit, first = estimate_stack(task, members, folds, among, [0] if choose else [])
        of_first[task.seed] = task, first
        return fit

    found = cross_fit_together(
        pool,
        folds,
        seed,
        partial(side_by_side, estimate),
        "auto" if choose else "stack",
        repeats,
        plain_mean,
        fit_sample=settings["fit_sample"],
    )
    fits = [fit for fold in found.details["per_fold"] for fit in fold["fits"]]
    found.details["weights"] = {
        member.name: float(np.mean([fit["weights"].get(member.name, 0.0) for fit in fits]))
        for member in members
    }
    if choose:
        tasks, logits = zip(*(of_first[key] for key in sorted(of_first)), strict=True)
        first = plain_mean(tasks, logits, repeats)
        value, low, high = auc_difference(found.scores, first, pool.forget)
        found.details["gain"] = {"auc": value, "low": low, "high": high}
        name, times = Counter(fit["chosen"] for fit in fits).most_common(1)[0]
        found.details["chosen"] = f"{name} ({times} of {len(fits)} folds)"
        print(
            f"auto: {found.details['chosen']}, AUC {found.details['auc']:.3f}, which is "
            f"{value:+.3f} [{low:+.3f}, {high:+.3f}] beside {members[0].name}",
            file=sys.stderr,
        )
    return found


def estimate_stack(
    task: Task,
    members: Sequence[Member],
    folds: int,
    among: Mapping[str, Sequence[int]],
    baseline: Sequence[int] = (),
) -> tuple[Fit, Doubles]:
    """Return the held-out logits of the candidate that is chosen ``among`` them, and those of the
    ``baseline`` (empty without one). Candidates and baseline are places of members.

    Chosen is the first whose weighted log loss on the training examples, out of fold, is within
    one standard error of the least: a standard error of their difference, text by text. ``details``
    say which (``chosen``), the ``losses`` in nats, and of the chosen one the ``weights`` of its
    members, per standard deviation of each. Raises what the members raise, and ``UserError`` when
    the training examples are too few for the inner ``folds``.
    """
    forget = task.forget[task.train]
    inner = stratified_folds(forget, folds, derive_seed(task.seed, INNER))
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
    for m in sorted({*baseline, *(place for one in among.values() for place in one)}):
        for i, own in enumerate(members[m].estimate(tasks, False)):
            scores[inner == i, m] = own
    losses = {
        name: _losses(scores[:, one], forget, inner, folds)
        for name, one in (among if len(among) > 1 else {}).items()
    }
    chosen = _first_as_good(losses) if losses else next(iter(among))
    last = replace(task, seed=derive_seed(task.seed, FINAL))
    held = np.full((len(task.held), len(members)), np.nan)
    for m in sorted({*among[chosen], *baseline}):
        (held[:, m],) = members[m].estimate([last], True)
    logits, weights = _combined(scores[:, among[chosen]], forget, held[:, among[chosen]])
    details = {
        "chosen": chosen,
        "weights": dict(zip((members[m].name for m in among[chosen]), weights, strict=True)),
        "losses": {name: float(loss.mean()) for name, loss in losses.items()},
    }
    if not baseline:
        return (logits, details), np.empty(0)
    beside, _ = _combined(scores[:, baseline], forget, held[:, baseline])
    return (logits, details), beside


def _first_as_good(losses: Mapping[str, Doubles]) -> str:
    """Return the first whose mean loss is within a standard error of the least."""
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    for name, loss in losses.items():
        more = loss - best
        if more.mean() <= more.std(ddof=1) / np.sqrt(len(more)):
            return name
    raise AssertionError("the best is within an error of itself")


def _losses(
    scores: Doubles, forget: NDArray[np.bool_], inner: NDArray[np.int16], folds: int
) -> Doubles:
    """Return the weighted log loss (n,) of each text, by a combination fitted without its inner
    fold."""
    logits = np.empty(len(forget))
    for i in range(folds):
        own = inner == i
        logits[own] = _combined(scores[~own], forget[~own], scores[own])[0]
    signed = np.where(forget, logits, -logits)
    return balanced_weights(forget) * np.logaddexp(0.0, -signed)


def _combined(
    scores: Doubles, forget: NDArray[np.bool_], held: Doubles
) -> tuple[Doubles, list[float]]:
    """Return calibrated logits of ``held`` (m, k) by a logistic regression on ``scores`` (n, k),
    and its weights per standard deviation of each column."""
    mean, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    ends = np.vstack([(held - mean) / scale, np.zeros((1, held.shape[1])), np.eye(held.shape[1])])
    found = logistic((scores - mean) / scale, forget, VARIANCE)(ends)
    intercept, at_one = found[len(held)], found[len(held) + 1 :]
    return found[: len(held)], [float(each - intercept) for each in at_one]
