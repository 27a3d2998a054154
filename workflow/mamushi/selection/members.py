"""The members of ``mamushi_stack`` and ``auto``, and their cross-fitting."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection.crossfit import Fit, Task, cross_fit, derive_seed
from mamushi.selection.linear import estimate_layers, estimate_ngrams, ngrams
from mamushi.selection.metrics import auc_difference
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.stack import Candidate, Member, estimate_stack

Doubles = NDArray[np.float64]


def members_of(pool: Pool, settings: Mapping[str, Any]) -> list[Member]:
    """The members that the settings ask for: networks first, then layers, then words.

    Raises ``UserError`` for a depth at which the texts are not embedded, and when there is none.
    """
    found = []
    if settings["networks"]:
        found.append(_networks(settings["networks"]))
    # The last layer first: it is what the paper reads.
    for depth in sorted(settings["depths"], reverse=True):
        found.append(_layer(f"linear_{depth:g}", pool.at(depth), settings["prior"]))
    if settings["lexical"]:
        found.append(_words(ngrams(pool), settings["prior"]))
    if not found:
        raise UserError("no member", do="give it depths, lexical: true, or networks")
    return found


def stacked(
    pool: Pool,
    folds: int,
    seed: int,
    members: Sequence[Member],
    among: Sequence[Candidate],
    also: Candidate | None = None,
) -> Scored:
    """Cross-fitted logits of what is chosen ``among`` the candidates in each fold; with ``also``,
    the details say, and so does a line, what that was and the ``gain`` in AUC over that one."""
    beside = np.zeros(len(pool.ids))

    def estimate(task: Task) -> Fit:
        fit, other = estimate_stack(task, members, folds, among, also)
        if other is not None:
            beside[task.held] = other
        return fit

    found = cross_fit(pool, folds, seed, estimate, "stack" if also is None else "auto")
    weights = [fit["weights"] for fit in found.details["per_fold"]]
    found.details["weights"] = {
        member.name: float(np.mean([given.get(member.name, 0.0) for given in weights]))
        for member in members
    }
    if also is not None:
        value, low, high = auc_difference(found.scores, beside, pool.forget)
        found.details["gain"] = {"auc": value, "low": low, "high": high}
        times = Counter(fit["chosen"] for fit in found.details["per_fold"])
        name, most = times.most_common(1)[0]
        found.details["chosen"] = f"{name} ({most} of {folds} folds)"
        print(
            f"auto: {found.details['chosen']}, AUC {found.details['auc']:.3f}, which is "
            f"{value:+.3f} [{low:+.3f}, {high:+.3f}] beside {also.name}",
            file=sys.stderr,
        )
    return found


def _layer(name: str, layer: NDArray[np.float16], prior: float) -> Member:
    return Member(name, lambda tasks: [estimate_layers(task, [layer], prior)[0] for task in tasks])


def _words(found: tuple[sparse.csr_matrix, sparse.csr_matrix], prior: float) -> Member:
    return Member(
        "lexical", lambda tasks: [estimate_ngrams(task, found, prior)[0] for task in tasks]
    )


def _networks(number: int) -> Member:
    """The mean logits of ``number`` networks, each first brought to mean 0 and standard deviation 1
    over what it scores: how far a network's logits spread depends on when its training stopped more
    than on the texts."""
    from mamushi.selection.mlp import Recipe, estimate_mlp

    defaults = plugin("selector", "mamushi").defaults
    recipe = Recipe(**{key: defaults[key] for key in Recipe.__dataclass_fields__})

    def estimate(tasks: Sequence[Task]) -> list[Doubles]:
        many = [
            replace(task, seed=derive_seed(task.seed, i)) for task in tasks for i in range(number)
        ]
        logits = [(own - own.mean()) / (own.std() or 1.0) for own, _ in estimate_mlp(many, recipe)]
        return [np.mean(logits[i : i + number], axis=0) for i in range(0, len(many), number)]

    return Member("mamushi", estimate)
