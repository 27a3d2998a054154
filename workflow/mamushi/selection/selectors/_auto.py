"""The members of the selector ``auto`` and how one or all of them are chosen."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.registry import plugin
from mamushi.running.threads import side_by_side
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import (
    Fit,
    Task,
    cross_fit_together,
    derive_seed,
    plain_mean,
)
from mamushi.selection.folds import balanced_weights
from mamushi.selection.linear import count_ngrams, estimate_layers, estimate_ngrams
from mamushi.selection.metrics import auc_difference
from mamushi.selection.nested import Member, combined, inner_scores, last_scores, one_by_one
from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated.

    ``details`` have the mean ``weights`` of the members, what was ``chosen``, and the ``gain`` in
    AUC over the networks with its 95% interval. Raises ``UserError`` when a domain has too few
    examples for the folds within a fold, and for a depth at which the texts are not embedded.
    """
    members = members_of(pool, settings)
    folds, repeats = settings["folds"], settings["repeats"]
    # By the task's seed, because tasks end in any order.
    of_first: dict[int, tuple[Task, Doubles]] = {}

    def estimate(task: Task) -> Fit:
        fit, first = estimate_choice(task, members, folds)
        of_first[task.seed] = task, first
        return fit

    together, sample = partial(side_by_side, estimate), settings["fit_sample"]
    scored = cross_fit_together(
        pool, folds, seed, together, "auto", repeats, plain_mean, fit_sample=sample
    )
    fits = [fit for fold in scored.details["per_fold"] for fit in fold["fits"]]
    scored.details["weights"] = {
        member.name: float(np.mean([fit["weights"].get(member.name, 0.0) for fit in fits]))
        for member in members
    }
    tasks, logits = zip(*(of_first[key] for key in sorted(of_first)), strict=True)
    first = plain_mean(tasks, logits, repeats)
    value, low, high = auc_difference(scored.scores, first, pool.forget, pool.groups)
    scored.details["gain"] = {"auc": value, "low": low, "high": high}
    name, times = Counter(fit["chosen"] for fit in fits).most_common(1)[0]
    scored.details["chosen"] = f"{name} ({times} of {len(fits)} folds)"
    print(
        f"auto: {scored.details['chosen']}, AUC {scored.details['auc']:.3f}, which is "
        f"{value:+.3f} [{low:+.3f}, {high:+.3f}] beside {members[0].name}",
        file=sys.stderr,
    )
    return scored


def members_of(pool: Pool, settings: Mapping[str, Any]) -> list[Member]:
    """Return the members that the settings ask for, from the simplest on: networks, then layers,
    of which the paper reads the last, then words."""
    prior, members = settings["prior"], [_networks(settings)]
    for depth in sorted(settings["depths"], reverse=True):
        fit = partial(estimate_layers, layers=[pool.at(depth)], prior=prior)
        members.append(one_by_one(f"linear_{depth:g}", fit))
    if settings["lexical"]:
        counts = count_ngrams(pool)
        members.append(one_by_one("lexical", partial(estimate_ngrams, counts=counts, prior=prior)))
    return members


def _networks(settings: Mapping[str, Any]) -> Member:
    """Return the member that averages networks, each first brought to mean 0 and standard deviation
    1 over what it scores. The networks of all repeats are as many as the selector has that lends
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
        logits = [(x - x.mean()) / (x.std() or 1.0) for x, _ in estimate_mlp(many, lent)]
        return [np.mean(logits[i : i + number], axis=0) for i in range(0, len(many), number)]

    return Member("mamushi", estimate)


def estimate_choice(task: Task, members: Sequence[Member], folds: int) -> tuple[Fit, Doubles]:
    """Return the held-out logits of what is chosen among each member and all, and of the first.

    Chosen is the first whose weighted log loss on the training examples, out of fold, is within
    one standard error (of their difference) of the least. ``details`` say which (``chosen``), the
    ``losses`` in nats, and the ``weights`` of its members per standard deviation of each.
    """
    forget = task.forget[task.train]
    scores, inner = inner_scores(task, members, folds)
    among = {member.name: [m] for m, member in enumerate(members)}
    among["stack"] = list(range(len(members)))
    losses = {
        name: _losses(scores[:, columns], forget, inner, folds) for name, columns in among.items()
    }
    chosen = _first_as_good(losses, task.train_groups)
    held = last_scores(task, members, {0, *among[chosen]})
    logits, weights = combined(scores[:, among[chosen]], forget, held[:, among[chosen]])
    details = {
        "chosen": chosen,
        "weights": dict(zip((members[m].name for m in among[chosen]), weights, strict=True)),
        "losses": {name: float(loss.mean()) for name, loss in losses.items()},
    }
    beside, _ = combined(scores[:, :1], forget, held[:, :1])
    return (logits, details), beside


def _first_as_good(losses: Mapping[str, Doubles], groups: NDArray[np.int64] | None = None) -> str:
    """Return the first whose mean loss is within a standard error of the least, over ``groups`` of
    texts if there are any."""
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    of_group = np.unique(groups, return_inverse=True)[1] if groups is not None else None
    for name, loss in losses.items():
        excess = loss - best
        error = excess.std(ddof=1) / np.sqrt(len(excess))
        if of_group is not None:
            total = np.bincount(of_group, excess - excess.mean())
            error = np.sqrt(len(total)) * total.std(ddof=1) / len(excess)
        if excess.mean() <= error:
            return name
    raise AssertionError("the best is within an error of itself")


def _losses(
    scores: Doubles, forget: NDArray[np.bool_], inner: NDArray[np.int16], folds: int
) -> Doubles:
    """Return the weighted log loss (n,) of texts, by combinations fitted without their fold."""
    logits = np.empty(len(forget))
    for i in range(folds):
        held = inner == i
        logits[held] = combined(scores[~held], forget[~held], scores[held])[0]
    signed = np.where(forget, logits, -logits)
    return balanced_weights(forget) * np.logaddexp(0.0, -signed)
