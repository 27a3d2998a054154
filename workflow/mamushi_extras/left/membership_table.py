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
from mamushi.evaluation.sad import Floats
from mamushi.io import paths
from mamushi.io.tables import INFERENCE, read_table
from mamushi_extras.left.attacks import FALSE_POSITIVES, attack_auc, compare, likelihood_ratio, tpr
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP

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
    """Read that of each text (n,). Raises ``UserError`` for a file of other ones."""
    table = read_table(path, LIKELIHOODS).to_pydict()
    if any(table[name] != texts[name] for name in texts):
        problem = "is of other texts than the others"
        raise UserError(problem, where=path, do="delete it and run again")
    nll, tokens = (np.array(table[name], dtype=np.float64) for name in ("nll", "tokens"))
    return -nll / tokens
