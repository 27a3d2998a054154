"""The audit of models, text by text: what they still reveal of texts that they should not know.

Does an attack take the texts for members? Each number stands beside that of gold models, which
never saw them: common texts look like members to any attack.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.errors import UserError
from mamushi.evaluation.cohort import RETRAINING_SOURCE, Cohort, ModelSource, cohorts
from mamushi.evaluation.effects import share_columns
from mamushi.evaluation.sad import Floats
from mamushi.io import paths
from mamushi.io.tables import INFERENCE, read_table
from mamushi_extras.left.attacks import (
    CHANCE,
    ComparedToGold,
    attack_auc,
    compare,
    likelihood_ratio,
    tpr,
)
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP

GOLD, BETA0, BASE = map(ModelSource, ("gold", "beta0", "base"))
ATTACKS = ("loss", "reference", "likelihood_ratio")
MEASURES = {"auc": attack_auc, "tpr": tpr}
FEWEST_SEEDS = 3  # For a likelihood ratio: the model's own, and two of shadow models.
FEWEST_TEXTS = 10  # Texts of either kind below which nothing is estimated.
FEWEST_OTHERS = {"auc": FEWEST_TEXTS, "tpr": 100}


def models_asked(
    grid: Mapping[str, Any], start: str, ready: bool
) -> dict[ModelSource, ModelSource | None]:
    """Return the models that are asked, gold aside, each with the one that it was before: those
    that, or whose start, were trained on the forget texts of the inference section. ``start`` is
    the endpoint from which unlearning starts; ``ready`` that it was trained before, on whatever
    there is."""
    contaminated = [ModelSource("contaminated")] if ready else []
    asked: dict[ModelSource, ModelSource | None] = dict.fromkeys([BASE, *contaminated, BETA0])
    for pair in product(grid["selectors"], map(float, grid["budgets"])):
        asked[ModelSource(RETRAINING_SOURCE, *pair)] = BETA0
        if ready or start == "beta0":
            asked |= {ModelSource(name, *pair): ModelSource(start) for name in grid["unlearners"]}
    return asked


def audit_texts(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    ready: Sequence[str],
    root: str | Path = "results",
) -> pa.Table:
    """Return the table ``membership`` of all cells.

    ``starts`` and ``ready`` as in ``models_asked``, by model. Raises ``UserError`` for a file that
    is missing or of other texts.
    """
    rows = [
        row
        for cohort in cohorts(grid, root)
        for row in _rows(cohort, models_asked(grid, starts[cohort.model], cohort.model in ready))
    ]
    return pa.Table.from_pylist(rows, schema=MEMBERSHIP.schema)


def _rows(
    cohort: Cohort, models: Mapping[ModelSource, ModelSource | None]
) -> Iterator[dict[str, Any]]:
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

    for source, before in models.items():
        ours, gold, start = scores(source), scores(GOLD), scores(before) if before else {}
        member = np.tile(ranked, (len(cohort.seeds), 1))
        asked = {"forget": member}
        if source.selector is not None:
            lists = [np.isin(texts["id"], ids) for ids in cohort.lists(source)]
            asked = {"removed": member & lists, "kept": member & ~np.array(lists)}
        for members, inside in asked.items():
            # Seeds may remove other numbers of texts: the least of them.
            counts = {"texts": int(inside.sum(axis=1).min()), "others": int((~ranked).sum())}
            head = {"method": source.source, "selector": source.selector, "beta": source.beta}
            head |= {"members": members, **counts, "seeds": len(cohort.seeds)}
            for attack, (name, measure) in product(ATTACKS, MEASURES.items()):
                row = {**cohort.at, **head, "attack": attack, "measure": name}
                why = None if attack in ours else _WHY_NOT[attack]
                why = why or _too_few(**counts, least=FEWEST_OTHERS[name])
                if why is None:
                    with_gold = compare(
                        ours[attack], gold[attack], start.get(attack), inside, ~ranked, measure
                    )
                    row |= _columns(with_gold, CHANCE[measure])
                    # Gold is the aim of texts that are gone alone; a rate of few is too unsure.
                    if with_gold.share and members == "removed" and name == "auc":
                        row |= share_columns("share", with_gold.share)
                        row["share_withheld"] = with_gold.share.reason
                yield {**row, "why": why}


_WHY_NOT = {
    "reference": "the base model is what the attack compares with",
    "likelihood_ratio": f"needs at least {FEWEST_SEEDS} seeds",
}


def _mean_log_likelihood(path: Path, texts: Mapping[str, Sequence[Any]]) -> Floats:
    """Read that of each text (n,). Raises ``UserError`` for a file of other ones."""
    table = read_table(path, LIKELIHOODS).to_pydict()
    if any(table[name] != texts[name] for name in texts):
        problem = "is of other texts than the others"
        raise UserError(problem, where=path, do="delete it and run again")
    nll, tokens = (np.array(table[name], dtype=np.float64) for name in ("nll", "tokens"))
    return -nll / tokens


def _too_few(texts: int, others: int, least: int) -> str | None:
    if texts < FEWEST_TEXTS:
        return f"{texts} texts; an estimate takes at least {FEWEST_TEXTS}"
    if others < least:
        return f"{others} held-out texts to compare with; this measure takes at least {least}"
    return None


def _columns(of: ComparedToGold, chance: float) -> dict[str, Any]:
    """Return the columns of ``schemas.MEMBERSHIP`` that need an estimate, but for the share."""
    row: dict[str, Any] = dict(zip(("value", "low", "high"), of.model, strict=True))
    for name, estimate in (("gold", of.gold), ("difference", of.difference)):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), estimate, strict=True))
    low, high = of.difference.low, of.difference.high
    relation = "more than" if low > 0 else "less than" if high < 0 else "not told from"
    at_fault = not of.gold.low <= chance <= of.gold.high
    return {**row, "start": of.start, "at_fault": at_fault, "verdict": f"{relation} gold"}
