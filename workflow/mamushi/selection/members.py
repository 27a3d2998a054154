"""The members of ``mamushi_stack`` and ``auto``, and their cross-fitting."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.threads import side_by_side
from mamushi.selection.crossfit import Fit, Task, cross_fit_together, derive_seed, plain_mean
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
        found.append(_networks(settings))
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
    settings: Mapping[str, Any],
    seed: int,
    members: Sequence[Member],
    among: Sequence[Candidate],
    also: Candidate | None = None,
) -> Scored:
    """Cross-fitted logits of what is chosen ``among`` the candidates in each fold; with ``also``,
    the details say, and so does a line, what that was and the ``gain`` in AUC over that one."""
    folds, repeats = settings["folds"], settings["repeats"]
    # By the task's seed, because tasks end in any order.
    others: dict[int, tuple[Task, Doubles]] = {}

    def estimate(task: Task) -> Fit:
        fit, other = estimate_stack(task, members, folds, among, also)
        if other is not None:
            others[task.seed] = task, other
        return fit

    name = "stack" if also is None else "auto"
    together = partial(side_by_side, estimate)
    most = settings["fit_sample"]
    found = cross_fit_together(
        pool, folds, seed, together, name, repeats, plain_mean, fit_sample=most
    )
    fits = [fit for fold in found.details["per_fold"] for fit in fold["fits"]]
    found.details["weights"] = {
        member.name: float(np.mean([fit["weights"].get(member.name, 0.0) for fit in fits]))
        for member in members
    }
    if also is not None:
        tasks, logits = zip(*(others[key] for key in sorted(others)), strict=True)
        value, low, high = auc_difference(
            found.scores, plain_mean(tasks, logits, repeats), pool.forget
        )
        found.details["gain"] = {"auc": value, "low": low, "high": high}
        chosen, most = Counter(fit["chosen"] for fit in fits).most_common(1)[0]
        found.details["chosen"] = f"{chosen} ({most} of {len(fits)} folds)"
        print(
            f"auto: {found.details['chosen']}, AUC {found.details['auc']:.3f}, which is "
            f"{value:+.3f} [{low:+.3f}, {high:+.3f}] beside {also.name}",
            file=sys.stderr,
        )
    return found


def _layer(name: str, layer: NDArray[np.float16], prior: float) -> Member:
    return Member(
        name, lambda tasks, _: [estimate_layers(task, [layer], prior)[0] for task in tasks]
    )


def _words(found: tuple[sparse.csr_matrix, sparse.csr_matrix], prior: float) -> Member:
    return Member(
        "lexical", lambda tasks, _: [estimate_ngrams(task, found, prior)[0] for task in tasks]
    )


def _networks(settings: Mapping[str, Any]) -> Member:
    """The mean logits of networks, each first brought to mean 0 and standard deviation 1 over what
    it scores: how far a network's logits spread depends on when its training stopped more than on
    the texts. The networks of all repeats are as many as the selector has that lends them; in its
    place may be its name, for its defaults."""
    from mamushi.selection.mlp import Recipe, estimate_mlp

    of = settings["networks"]
    given = plugin("selector", of).defaults if isinstance(of, str) else of
    recipe = Recipe(**{key: given[key] for key in Recipe.__dataclass_fields__})
    own = -(-given["seeds_averaged"] // settings["repeats"])

    def estimate(tasks: Sequence[Task], final: bool) -> list[Doubles]:
        number = own if final else settings["inner_networks"]
        many = [
            replace(task, seed=derive_seed(task.seed, i)) for task in tasks for i in range(number)
        ]
        logits = [(one - one.mean()) / (one.std() or 1.0) for one, _ in estimate_mlp(many, recipe)]
        return [np.mean(logits[i : i + number], axis=0) for i in range(0, len(many), number)]

    return Member("mamushi", estimate)
