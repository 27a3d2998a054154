"""Membership inference: was a text among those that a model was trained on?

An attack scores every text, members higher. It is measured by its AUC, and by the share of members
that it finds while it accuses 1% of the others (Carlini et al. 2022). Each number stands beside
that of gold models, which never saw the texts: common texts look like members to any attack.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from scipy.stats import norm

from mamushi.config.arms import RETRAINING_SOURCE, Arm
from mamushi.evaluation.intervals import UPPER, Floats, t_quantile
from mamushi.io import paths
from mamushi.io.columns import Table
from mamushi.io.tables import INFERENCE, read_table
from mamushi.selection.arrays import Mask
from mamushi.selection.metrics import auc_ends
from mamushi_extras.effects.cohort import Cohort, cohorts
from mamushi_extras.effects.contrasts import ONE_SEED
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP

FALSE_POSITIVES, RESAMPLES = 0.01, 200
FEWEST_SEEDS = 3  # For a likelihood ratio: the model's own, and two of shadow models.
FEWEST_TEXTS = 10  # Texts of either kind below which nothing is estimated.
WHY_NOT = {
    "loss": None,
    "reference": "the base model is what the attack compares with",
    "likelihood_ratio": f"needs at least {FEWEST_SEEDS} seeds",
}
"""The attacks, and why one cannot be made."""


def likelihood_ratio(target: Floats, outside: Floats, inside: Floats, seen: Mask) -> Floats:
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
    spread, spread_away = np.sqrt(np.maximum([gains.var(ddof=1), away], 1e-12))
    is_member = norm.logpdf(excess, gains.mean(), spread)
    return np.asarray(is_member - norm.logpdf(excess, 0, spread_away))


def attack_auc(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return P(a member's score > another's), ties counted half, (B,), from scores (m,) and (n,)
    with weights (B, m) and (B, n)."""
    above = (members[:, None] > outsiders) + 0.5 * (members[:, None] == outsiders)
    pairs = np.maximum(wm.sum(axis=1), 1.0) * np.maximum(wo.sum(axis=1), 1.0)
    return np.asarray(((wm @ above) * wo).sum(axis=1) / pairs)


def tpr(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return the true positive rate at 1% false positives (B,): the share of members that score
    above all but 1% of the outsiders. The arguments are those of ``attack_auc``."""
    order = np.argsort(-outsiders, kind="stable")
    reached = np.cumsum(wo[:, order], axis=1)
    allowed = FALSE_POSITIVES * reached[:, -1:] + 1e-9
    limit = outsiders[order][(reached <= allowed).sum(axis=1)]
    above = (wm * (members > limit[:, None])).sum(axis=1)
    return np.asarray(above / np.maximum(wm.sum(axis=1), 1.0))


# Of each measure: how it is made, its value by chance, and the fewest texts of the others.
MEASURES = {"auc": (attack_auc, 0.5, FEWEST_TEXTS), "tpr": (tpr, FALSE_POSITIVES, 100)}


def compare(
    model: Floats, gold: Floats, member: Mask, outsider: Mask, measure: str
) -> dict[str, Any]:
    """Return a measure of models, from their scores (S, n) of n texts under S seeds, beside that of
    ``gold`` ones, as columns of the table ``membership``. ``member`` (S, n) are the texts that are
    looked for by seed, and ``outsider`` (n,) the others. The variance is over texts, by a bootstrap
    of the same texts in all seeds and models, and of the mean over seeds. An AUC has the interval
    of ``auc_ends``; a share, or a difference, without any variance the exact binomial limit
    (Clopper and Pearson)."""
    function, chance, _ = MEASURES[measure]
    rng = np.random.default_rng(0)
    weights = np.ones((RESAMPLES + 1, len(outsider)))
    for rows in map(np.flatnonzero, (member.any(axis=0), outsider)):
        drawn = rng.integers(len(rows), size=(RESAMPLES, len(rows)))
        weights[1:, rows] = [np.bincount(again, minlength=len(rows)) for again in drawn]

    def measure_by_seed(scores: Floats) -> Floats:
        """Return the measure by seed (S, 1 + B): first on all texts, then on B resamples."""
        pairs = zip(scores, member, strict=True)
        return np.array(
            [function(x[m], x[outsider], weights[:, m], weights[:, outsider]) for x, m in pairs]
        )

    ours, theirs = measure_by_seed(model), measure_by_seed(gold)
    n, row = int(min(*member.sum(axis=1), outsider.sum())), dict[str, Any]()
    columns = {"value": ours, "gold": theirs, "difference": ours - theirs}
    for name, values in columns.items():
        by_seed, resampled = values[:, 0], values[:, 1:].mean(axis=0)
        value, of_texts = float(by_seed.mean()), float(resampled.var(ddof=1))
        variance, errors = variance_and_errors(by_seed, of_texts, n - 1)
        if measure == "auc" and name != "difference":
            low, high = auc_ends(value, variance, n, errors)
        else:
            half = errors * float(np.sqrt(variance)) if variance else 1 - (1 - UPPER) ** (1 / n)
            least = -1.0 if name == "difference" else 0.0
            low, high = max(value - half, least), min(value + half, 1.0)
        prefix = "" if name == "value" else f"{name}_"
        row |= {name: value, f"{prefix}low": low, f"{prefix}high": high}
    row["at_fault"] = not row["gold_low"] <= chance <= row["gold_high"]
    beside = "more than" if low > 0 else "less than" if high < 0 else "not told from"
    return row | {"verdict": f"{beside} gold"}


def variance_and_errors(by_seed: Floats, of_texts: float, freedom: float) -> tuple[float, float]:
    """Return the variance of a mean over texts and seeds, and its errors to an end of the 95%
    interval: the variance ``of_texts`` with its degrees of ``freedom``, and that of the mean of
    several seeds (S,), combined by Welch and Satterthwaite."""
    terms = [(of_texts, freedom)]
    if len(by_seed) > 1:
        terms.append((float(by_seed.var(ddof=1)) / len(by_seed), len(by_seed) - 1))
    variance = sum(v for v, _ in terms)
    combined = sum(v**2 / f for v, f in terms)
    return variance, t_quantile(variance**2 / combined if combined else np.inf)


def columns_of(arm: Arm) -> dict[str, Any]:
    """Return what tables say of how a model was made."""
    method = arm.endpoint or arm.unlearner or RETRAINING_SOURCE
    beta = None if arm.beta is None else float(arm.beta)
    return {"method": method, "selector": arm.selector, "beta": beta}


def tables(
    root: Path, grid: Mapping[str, Any], arms: Mapping[str, Sequence[str]]
) -> dict[Table, list[dict[str, Any]]]:
    """Return the table of a grid, about some arms of each model."""
    of_cohorts = (membership_rows(cohort, arms[cohort.model]) for cohort in cohorts(grid, root))
    return {MEMBERSHIP: [*chain(*of_cohorts)]}


def membership_rows(cohort: Cohort, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``membership`` of a dataset and model, about the arms of some
    ``names``."""
    seeds, tables = len(cohort.seeds), {}
    for name in dict.fromkeys(["base", "beta0", "gold", *names]):
        files = cohort.files(paths.MEMBERSHIP, arm=name)
        # The base model is the same for all seeds, and asked once.
        files = files[:1] * seeds if name == "base" else files
        tables[name] = [read_table(file, LIKELIHOODS) for file in files]
    texts = tables["gold"][0].select(["id", "section"])
    assert all(t.select(["id", "section"]).equals(texts) for t in chain(*tables.values()))
    # Mean log-likelihoods per predicted token in nats, (S, n).
    means = {
        name: np.array([-t["nll"].to_numpy() / t["tokens"].to_numpy() for t in of_arm])
        for name, of_arm in tables.items()
    }
    ranked = np.asarray(pc.equal(texts["section"], INFERENCE))
    others, gold_scores = int((~ranked).sum()), attack_scores("gold", means, ranked)
    for name in names:
        arm, scores = Arm.parse(name), attack_scores(name, means, ranked)
        sets = {"forget": np.tile(ranked, (seeds, 1))}
        if arm.selector and arm.beta:
            listed = cohort.is_listed(texts["id"], arm.selector, arm.beta)
            sets = {"removed": ranked & listed, "kept": ranked & ~listed}
        for (members, inside), attack, measure in product(sets.items(), WHY_NOT, MEASURES):
            # Seeds may remove other numbers of texts: the least of them.
            count, fewest = int(inside.sum(axis=1).min()), MEASURES[measure][2]
            if attack not in scores:
                told: dict[str, Any] = {"why": WHY_NOT[attack]}
            elif count < FEWEST_TEXTS or others < fewest:
                told = {"why": f"takes {FEWEST_TEXTS} texts, and {fewest} held-out ones"}
            else:
                told = compare(scores[attack], gold_scores[attack], inside, ~ranked, measure)
                if seeds == 1:
                    told = {of: told[of] for of in ("value", "gold", "difference")}
                    told["why"] = ONE_SEED
            about = {**cohort.cell, **columns_of(arm), "members": members, "attack": attack}
            counts = {"texts": count, "others": others, "seeds": seeds}
            yield {**about, "measure": measure, **counts, **told}


def attack_scores(name: str, means: Mapping[str, Floats], ranked: Mask) -> dict[str, Floats]:
    """Return the scores (S, n) of membership attacks on an arm: the mean log-likelihood (Yeom et
    al. 2018), that less the base model's (Carlini et al. 2021), and the likelihood ratio."""
    attacks = {"loss": means[name]}
    if name != "base":
        attacks["reference"] = means[name] - means["base"]
    if len(means[name]) >= FEWEST_SEEDS:
        ratios = []
        for seed, target in enumerate(means[name]):
            outside, inside = (np.delete(means[of], seed, axis=0) for of in ("gold", "beta0"))
            ratios.append(likelihood_ratio(target, outside, inside, ranked))
        attacks["likelihood_ratio"] = np.array(ratios)
    return attacks
