"""Membership inference: was a text among those that a model was trained on?

An attack scores every text, members higher. It is measured by its AUC, and by the share of members
that it finds while it accuses 1% of the others (Carlini et al. 2022). Each number stands beside
that of gold models, which never saw the texts: common texts look like members to any attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config.arms import Arm
from mamushi.evaluation.cohort import RETRAINING_SOURCE
from mamushi.evaluation.intervals import UPPER, Floats, variance_and_errors
from mamushi.io import paths, schemas
from mamushi.io.tables import INFERENCE, read_table
from mamushi.selection.metrics import auc_ends
from mamushi_extras.left.schemas import LIKELIHOODS

Bools = NDArray[np.bool_]

FALSE_POSITIVES = 0.01
RESAMPLES = 200
ATTACKS = ("loss", "reference", "likelihood_ratio")
FEWEST_SEEDS = 3  # For a likelihood ratio: the model's own, and two of shadow models.
FEWEST_TEXTS = 10  # Texts of either kind below which nothing is estimated.

# From scores of members (m,) and others (n,) and weights of both (B, m), (B, n) to (B,).
Measure = Callable[[Floats, Floats, Floats, Floats], Floats]


def likelihood_ratio(target: Floats, outside: Floats, inside: Floats, seen: Bools) -> Floats:
    """Return log p(T | member) - log p(T | no member) of each text, (n,).

    T is the mean log-likelihood per token, ``target`` (n,) under the model in question. Of k >= 2
    other seeds, ``outside`` (k, n) never saw the forget texts (gold), ``inside`` saw those that are
    ``seen`` (n,) (beta 0). Without memory of a text, T is normal about the mean of ``outside``;
    with it, higher by beta 0's mean gain. All texts share the variances (Carlini et al. 2022).
    """
    k = len(outside)
    excess = target - outside.mean(axis=0)
    # Of a further model about the mean of k: its own variance, and the mean's.
    away = outside.var(axis=0, ddof=1).mean() * (1 + 1 / k)
    # Each beta 0 against the golds of the other seeds, as the model in question is.
    gains = np.concatenate(
        [(inside[i] - np.delete(outside, i, axis=0).mean(axis=0))[seen] for i in range(k)]
    )
    return _log_normal(excess, gains.mean(), gains.var(ddof=1)) - _log_normal(excess, 0.0, away)


def _log_normal(x: Floats, mean: float, variance: float) -> Floats:
    variance = max(variance, 1e-12)
    return np.asarray(-((x - mean) ** 2) / (2 * variance) - np.log(variance) / 2)


def attack_auc(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return P(a member's score > another's), ties counted half, (B,)."""
    above = (members[:, None] > outsiders) + 0.5 * (members[:, None] == outsiders)
    areas: Floats = ((wm @ above) * wo).sum(axis=1) / (_total(wm) * _total(wo))
    return areas


def tpr(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return the share of members above the lowest score that at most 1% of the others exceed."""
    order = np.argsort(-outsiders, kind="stable")
    reached = np.cumsum(wo[:, order], axis=1)
    allowed = FALSE_POSITIVES * reached[:, -1:] + 1e-9
    limit = outsiders[order][(reached <= allowed).sum(axis=1)]
    rates: Floats = (wm * (members > limit[:, None])).sum(axis=1) / _total(wm)
    return rates


def _total(weights: Floats) -> Floats:
    """Sum weights (B, n) over texts; 1 where a resample has drawn none."""
    return np.maximum(weights.sum(axis=1), 1.0)


class Estimate(NamedTuple):
    """A mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


def compare(
    model: Floats, gold: Floats, member: Bools, outsider: Bools, measure: Measure
) -> tuple[Estimate, Estimate, Estimate]:
    """Return a measure of models, from their scores (S, n) of n texts under S seeds, that of
    ``gold`` ones, and the difference. ``member`` (S, n) are the texts that are looked for by seed,
    and ``outsider`` (n,) the others. The variance is over texts, by a bootstrap of the same texts
    in all seeds and models, and of the mean over seeds. An AUC has the interval of ``auc_ends``; a
    share, or a difference, without any variance the exact binomial limit (Clopper and Pearson)."""
    rng = np.random.default_rng(0)
    weights = np.ones((RESAMPLES + 1, len(outsider)))
    for rows in map(np.flatnonzero, (member.any(axis=0), outsider)):
        for b in range(1, RESAMPLES + 1):
            drawn = rng.integers(len(rows), size=len(rows))
            weights[b, rows] = np.bincount(drawn, minlength=len(rows))

    def measures(scores: Floats) -> Floats:
        """Return the measure of each seed, of the texts as they are and of resamples (S, 1 + B)."""
        pairs = zip(scores, member, strict=True)
        return np.array(
            [measure(x[m], x[outsider], weights[:, m], weights[:, outsider]) for x, m in pairs]
        )

    n = int(min(*member.sum(axis=1), outsider.sum()))

    def estimate(values: Floats, least: float, is_auc: bool) -> Estimate:
        """Estimate the mean of a measure, or of a difference, from ``least`` to 1."""
        by_seed, resampled = values[:, 0], values[:, 1:].mean(axis=0)
        value, of_texts = float(by_seed.mean()), float(resampled.var(ddof=1))
        variance, errors = variance_and_errors(by_seed, of_texts, n - 1)
        if is_auc:
            return Estimate(value, *auc_ends(value, variance, n, errors))
        half = errors * float(np.sqrt(variance)) if variance else 1 - (1 - UPPER) ** (1 / n)
        return Estimate(value, max(value - half, least), min(value + half, 1.0))

    ours, theirs, is_auc = measures(model), measures(gold), measure is attack_auc
    difference = estimate(ours - theirs, -1.0, False)
    return estimate(ours, 0.0, is_auc), estimate(theirs, 0.0, is_auc), difference


# Of each measure: how it is made, its value by chance, and the fewest texts of the others.
MEASURES = {"auc": (attack_auc, 0.5, FEWEST_TEXTS), "tpr": (tpr, FALSE_POSITIVES, 100)}
WHY_NOT = {
    "reference": "the base model is what the attack compares with",
    "likelihood_ratio": f"needs at least {FEWEST_SEEDS} seeds",
}


def columns_of(arm: Arm) -> dict[str, Any]:
    """Return what tables say of how a model was made."""
    return {
        "method": arm.endpoint or arm.unlearner or RETRAINING_SOURCE,
        "selector": arm.selector,
        "beta": None if arm.beta is None else float(arm.beta),
    }


def membership_rows(
    cells: Sequence[Mapping[str, Any]], names: Sequence[str], root: Path
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``membership`` of one dataset and model, whose seeds are the
    ``cells``, about the arms of some ``names``."""

    def read(cell: Mapping[str, Any], arm: str) -> pa.Table:
        return read_table(paths.under(root, paths.MEMBERSHIP, **cell, arm=arm), LIKELIHOODS)

    texts = read(cells[0], "gold").select(["id", "section"])
    ranked = np.asarray(pc.equal(texts["section"], INFERENCE))

    @cache
    def mean(arm: str) -> Floats:
        """Return the mean log-likelihood per predicted token in nats, (S, n). The base model is the
        same for all seeds, and asked once."""
        tables = [read(cells[0] if arm == "base" else cell, arm) for cell in cells]
        assert all(table.select(["id", "section"]).equals(texts) for table in tables), arm
        return np.array([-table["nll"].to_numpy() / table["tokens"].to_numpy() for table in tables])

    @cache
    def scores(arm: str) -> dict[str, Floats]:
        """Return the scores (S, n) of the attacks that can be made: the mean log-likelihood (Yeom
        et al. 2018), that less the base model's (Carlini et al. 2021), and the likelihood ratio."""
        attacks = {"loss": mean(arm)}
        if arm != "base":
            attacks["reference"] = mean(arm) - mean("base")
        if len(cells) >= FEWEST_SEEDS:
            ratios = []
            for seed, target in enumerate(mean(arm)):
                outside, inside = (np.delete(mean(of), seed, axis=0) for of in ("gold", "beta0"))
                ratios.append(likelihood_ratio(target, outside, inside, ranked))
            attacks["likelihood_ratio"] = np.array(ratios)
        return attacks

    for name in names:
        arm, member = Arm.parse(name), np.tile(ranked, (len(cells), 1))
        asked = {"forget": member}
        if arm.selector and arm.beta:
            on_list = {"selector": arm.selector, "beta": arm.beta}
            files = (paths.under(root, paths.REMOVAL, **cell, **on_list) for cell in cells)
            lists = [read_table(path, schemas.REMOVALS, ["id"])["id"] for path in files]
            listed = np.array([pc.is_in(texts["id"], ids.combine_chunks()) for ids in lists])
            asked = {"removed": member & listed, "kept": member & ~listed}
        about = {name: cells[0][name] for name in ("dataset", "model")} | columns_of(arm)
        for (members, inside), attack in product(asked.items(), ATTACKS):
            # Seeds may remove other numbers of texts: the least of them.
            counts = {"texts": int(inside.sum(axis=1).min()), "others": int((~ranked).sum())}
            head = {**about, "members": members, **counts, "seeds": len(cells), "attack": attack}
            for measure, (function, chance, fewest) in MEASURES.items():
                row = {**head, "measure": measure}
                if attack not in scores(name):
                    row["why"] = WHY_NOT[attack]
                elif counts["texts"] < FEWEST_TEXTS or counts["others"] < fewest:
                    row["why"] = f"takes {FEWEST_TEXTS} texts, and {fewest} held-out ones"
                else:
                    ours, theirs = scores(name)[attack], scores("gold")[attack]
                    row |= beside_gold(*compare(ours, theirs, inside, ~ranked, function), chance)
                yield row


def beside_gold(
    model: Estimate, gold: Estimate, difference: Estimate, chance: float
) -> dict[str, Any]:
    """Return the columns of a comparison whose measure is that by ``chance`` without memory."""
    row: dict[str, Any] = dict(zip(("value", "low", "high"), model, strict=True))
    for name, ends in (("gold", gold), ("difference", difference)):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    word = "not told from"
    if difference.low > 0 or difference.high < 0:
        word = "more than" if difference.low > 0 else "less than"
    return row | {"at_fault": not gold.low <= chance <= gold.high, "verdict": f"{word} gold"}
