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
from numpy.typing import NDArray

from mamushi.evaluation.cohort import RETRAINING_SOURCE, Cohort, ModelSource, cohorts
from mamushi.evaluation.paired import UPPER, variance_and_errors
from mamushi.evaluation.sad import Floats
from mamushi.io import paths
from mamushi.io.tables import INFERENCE, read_table
from mamushi.selection.metrics import auc_ends
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP

Bools = NDArray[np.bool_]

FALSE_POSITIVES = 0.01
RESAMPLES = 200

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


class ComparedToGold(NamedTuple):
    """A measure of a model, the same of gold, and the first less the second."""

    model: Estimate
    gold: Estimate
    difference: Estimate


def compare(
    model: Floats, gold: Floats, member: Bools, outsider: Bools, measure: Measure
) -> ComparedToGold:
    """Compare a measure of models, from their scores (S, n) of n texts under S seeds, with that of
    ``gold`` ones. ``member`` (S, n) are the texts that are looked for by seed, and ``outsider``
    (n,) the others.

    The variance has two parts: over texts, by a bootstrap that draws the same texts in all seeds
    and for both models, and of the mean over seeds. Of one seed it holds no error of training. An
    AUC has the interval of ``auc_ends``; a share, or a difference, without any variance the exact
    binomial limit (Clopper and Pearson 1934).
    """
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
    return ComparedToGold(estimate(ours, 0.0, is_auc), estimate(theirs, 0.0, is_auc), difference)


GOLD, BETA0, BASE = map(ModelSource, ("gold", "beta0", "base"))
ATTACKS = ("loss", "reference", "likelihood_ratio")
FEWEST_SEEDS = 3  # For a likelihood ratio: the model's own, and two of shadow models.
FEWEST_TEXTS = 10  # Texts of either kind below which nothing is estimated.
# Of each measure: how it is made, its value by chance, and the fewest texts of the others.
MEASURES = {"auc": (attack_auc, 0.5, FEWEST_TEXTS), "tpr": (tpr, FALSE_POSITIVES, 100)}


def audit_texts(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    ready: Sequence[str],
    root: str | Path = "results",
) -> pa.Table:
    """Return the table ``membership`` of all cells.

    ``starts`` has by model the endpoint from which unlearning starts; those that are ``ready`` were
    trained before, on whatever there is. Raises ``UserError`` for a file that is missing or of
    other texts.
    """
    rows: list[dict[str, Any]] = []
    for cohort in cohorts(grid, root):
        # Those that, or whose start, were trained on the forget texts of the inference section.
        ready_here = cohort.model in ready
        asked = [BASE, BETA0, *([ModelSource("contaminated")] if ready_here else [])]
        unlearners = grid["unlearners"] if ready_here or starts[cohort.model] == "beta0" else []
        lists = product([RETRAINING_SOURCE, *unlearners], grid["selectors"], grid["budgets"])
        asked += [ModelSource(name, selector, float(beta)) for name, selector, beta in lists]
        rows += _rows(cohort, asked)
    return pa.Table.from_pylist(rows, schema=MEMBERSHIP.schema)


def _rows(cohort: Cohort, models: Sequence[ModelSource]) -> Iterator[dict[str, Any]]:
    gold_file = cohort.files(paths.MEMBERSHIP, arm=GOLD.arm)[0]
    texts = read_table(gold_file, LIKELIHOODS, ["id", "section"]).to_pydict()
    ranked = np.array([section == INFERENCE for section in texts["section"]], dtype=bool)

    @cache
    def mean(source: ModelSource) -> Floats:
        """Return the mean log-likelihood per predicted token in nats, (S, n)."""
        files = cohort.files(paths.MEMBERSHIP, arm=source.arm)
        # The base model is the same for all seeds, and asked once.
        files = files[:1] * len(files) if source == BASE else files
        return np.array([_mean_log_likelihood(path, texts) for path in files])

    @cache
    def scores(source: ModelSource) -> dict[str, Floats]:
        """Return the scores (S, n) of the attacks that can be made: the mean log-likelihood (Yeom
        et al. 2018), that less the base model's (Carlini et al. 2021), and the likelihood ratio."""
        attacks = {"loss": mean(source)}
        if source != BASE:
            attacks["reference"] = mean(source) - mean(BASE)
        if len(cohort.seeds) >= FEWEST_SEEDS:
            ratios = []
            for seed, target in enumerate(mean(source)):
                outside, inside = (np.delete(mean(of), seed, axis=0) for of in (GOLD, BETA0))
                ratios.append(likelihood_ratio(target, outside, inside, ranked))
            attacks["likelihood_ratio"] = np.array(ratios)
        return attacks

    for source in models:
        member = np.tile(ranked, (len(cohort.seeds), 1))
        asked = {"forget": member}
        if source.selector is not None:
            lists = np.array([np.isin(texts["id"], ids) for ids in cohort.lists(source)])
            asked = {"removed": member & lists, "kept": member & ~lists}
        for members, inside in asked.items():
            # Seeds may remove other numbers of texts: the least of them.
            counts = {"texts": int(inside.sum(axis=1).min()), "others": int((~ranked).sum())}
            head = {"method": source.source, "selector": source.selector, "beta": source.beta}
            head |= {"members": members, **counts, "seeds": len(cohort.seeds)}
            for attack, (name, (measure, chance, fewest)) in product(ATTACKS, MEASURES.items()):
                row = {**cohort.at, **head, "attack": attack, "measure": name}
                if attack not in scores(source):
                    row["why"] = _WHY_NOT[attack]
                elif counts["texts"] < FEWEST_TEXTS or counts["others"] < fewest:
                    row["why"] = f"takes {FEWEST_TEXTS} texts, and {fewest} held-out ones"
                else:
                    ours, theirs = (scores(of)[attack] for of in (source, GOLD))
                    model, gold, difference = compare(ours, theirs, inside, ~ranked, measure)
                    row |= dict(zip(("value", "low", "high"), model, strict=True))
                    for column, ends in (("gold", gold), ("difference", difference)):
                        names = (column, f"{column}_low", f"{column}_high")
                        row |= dict(zip(names, ends, strict=True))
                    row["at_fault"] = not gold.low <= chance <= gold.high
                    row["verdict"] = _beside_gold(difference.low, difference.high)
                yield row


_WHY_NOT = {
    "reference": "the base model is what the attack compares with",
    "likelihood_ratio": f"needs at least {FEWEST_SEEDS} seeds",
}


def _beside_gold(low: float, high: float) -> str:
    """Return what the interval of a difference to gold says."""
    return f"{'more than' if low > 0 else 'less than' if high < 0 else 'not told from'} gold"


def _mean_log_likelihood(path: Path, texts: Mapping[str, Sequence[Any]]) -> Floats:
    """Read that of each text (n,)."""
    table = read_table(path, LIKELIHOODS).to_pydict()
    assert all(table[name] == texts[name] for name in texts), f"{path} is of other texts"
    nll, tokens = (np.array(table[name], dtype=np.float64) for name in ("nll", "tokens"))
    return -nll / tokens
