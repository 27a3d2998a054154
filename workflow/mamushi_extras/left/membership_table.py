"""The audit of models, text by text: what they still reveal of texts that they should not know.

Does an attack take the texts for members? Each number stands beside that of gold models, which
never saw them: common texts look like members to any attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    ATTACKS,
    CHANCE,
    FEWEST_OTHERS,
    FEWEST_SEEDS,
    FEWEST_TEXTS,
    AttackedSeed,
    Bools,
    Measure,
    attack_auc,
    compare,
    likelihood_ratio,
    per_token,
    simple_scores,
    tpr,
)
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP

_Row = dict[str, Any]
AttackScores = Mapping[str, Floats]  # Scores (n,) of one model, by attack.

GOLD, BETA0, BASE, CONTAMINATED = "gold", "beta0", "base", "contaminated"
MEASURES: Mapping[str, Measure] = {"auc": attack_auc, "tpr": tpr}


@dataclass(frozen=True)
class Audited:
    """A model that is audited, and its start."""

    source: ModelSource
    start: str | None = None


def audited(grid: Mapping[str, Any], start: str, ready: bool) -> list[Audited]:
    """Return the models that are audited, gold aside: those that, or whose start, were trained on
    the forget texts of the inference section. ``start`` is the endpoint from which unlearning
    starts; ``ready`` that it was trained before, on whatever there is."""
    models = [
        Audited(ModelSource(name)) for name in (BASE, *([CONTAMINATED] if ready else []), BETA0)
    ]
    for pair in product(grid["selectors"], map(float, grid["budgets"])):
        models.append(Audited(ModelSource(RETRAINING_SOURCE, *pair), BETA0))
        if ready or start == BETA0:
            models += [Audited(ModelSource(name, *pair), start) for name in grid["unlearners"]]
    return models


@dataclass(frozen=True)
class AuditedTexts:
    """The n texts that all models were asked about, and which of them are ``ranked``, (n,)."""

    ids: Sequence[str]
    ranked: Bools


@dataclass(frozen=True)
class Roles:
    """Which of n texts a row is about, seed by seed (S, n), and who the others are (n,)."""

    members: str
    member: Bools
    outsider: Bools


def audit_texts(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    ready: Sequence[str],
    root: str | Path = "results",
) -> pa.Table:
    """Return the table ``membership`` of all cells.

    ``starts`` and ``ready`` as in ``audited``, by model. Raises ``UserError`` for a file that is
    missing or of other texts.
    """
    rows: list[_Row] = []
    for cohort in cohorts(grid, root):
        models = audited(grid, starts[cohort.model], cohort.model in ready)
        rows += _membership(cohort, models)
    return pa.Table.from_pylist(rows, schema=MEMBERSHIP.schema)


def _membership(cohort: Cohort, models: Sequence[Audited]) -> Iterator[_Row]:
    read_from: dict[str, Any] = {}

    def read(source: ModelSource) -> list[dict[str, Floats]]:
        return [_statistics(path, read_from) for path in _files(cohort, paths.MEMBERSHIP, source)]

    gold, beta0, base = (read(ModelSource(name)) for name in (GOLD, BETA0, BASE))
    texts = _texts(read_from)
    shadows = [
        np.array([per_token(statistics) for statistics in by_seed]) for by_seed in (gold, beta0)
    ]

    @cache
    def scores(source: ModelSource) -> list[AttackScores]:
        by_seed: list[AttackScores] = []
        for seed, statistics in enumerate(read(source)):
            attacks = simple_scores(statistics, None if source.source == BASE else base[seed])
            if len(cohort.seeds) >= FEWEST_SEEDS:
                outside, inside = (np.delete(shadow, seed, axis=0) for shadow in shadows)
                ratio = likelihood_ratio(per_token(statistics), outside, inside, texts.ranked)
                attacks["likelihood_ratio"] = ratio
            by_seed.append(attacks)
        return by_seed

    def why_not(source: ModelSource, attack: str) -> str | None:
        if attack == "reference" and source.source == BASE:
            return "the base model is what the attack compares with"
        if attack == "likelihood_ratio" and len(cohort.seeds) < FEWEST_SEEDS:
            return f"needs at least {FEWEST_SEEDS} seeds, has {len(cohort.seeds)}"
        return None

    yield from _rows(cohort, models, texts, scores, why_not)


def _statistics(path: Path, texts_read: dict[str, Any]) -> dict[str, Floats]:
    """Read what a model makes of each text (n,). Raises ``UserError`` for a file of others."""
    table = read_table(path, LIKELIHOODS).to_pydict()
    here = {name: table.pop(name) for name in ("id", "section")}
    # Those of the first file count.
    texts_read.update({} if texts_read else here)
    if texts_read != here:
        problem = "is of other texts than the others"
        raise UserError(problem, where=path, do="delete it and run again")
    return {name: np.array(values, dtype=np.float64) for name, values in table.items()}


def _files(cohort: Cohort, pattern: str, source: ModelSource) -> list[Path]:
    """Return the file of each seed; the base model is the same for all, and asked once."""
    files = cohort.files(pattern, arm=source.arm)
    return [files[0]] * len(files) if source.source == BASE else files


def _texts(texts_read: Mapping[str, Sequence[Any]]) -> AuditedTexts:
    ranked = np.array([section == INFERENCE for section in texts_read["section"]], dtype=bool)
    return AuditedTexts(texts_read["id"], ranked)


def _roles(texts: AuditedTexts, model: Audited, lists: Sequence[Sequence[str]]) -> Iterator[Roles]:
    """Yield the sets of texts that a model is asked about; ``lists`` are removed ids by seed."""
    whole = np.tile(texts.ranked, (len(lists), 1))
    parts = {"forget": whole}
    if model.source.selector is not None:
        gone = map(set, lists)
        removed = np.array([[name in ids for name in texts.ids] for ids in gone], dtype=bool)
        parts = {"removed": whole & removed, "kept": whole & ~removed}
    for members, member in parts.items():
        yield Roles(members, member, ~texts.ranked)


def _rows(
    cohort: Cohort,
    models: Sequence[Audited],
    texts: AuditedTexts,
    scores: Callable[[ModelSource], list[AttackScores]],
    why_not: Callable[[ModelSource, str], str | None],
) -> Iterator[_Row]:
    gold = scores(ModelSource(GOLD))
    for model in models:
        source, ours = model.source, scores(model.source)
        start = scores(ModelSource(model.start)) if model.start else None
        for roles in _roles(texts, model, cohort.lists(source)):
            head = {"method": source.source, "selector": source.selector, "beta": source.beta}
            head |= {"members": roles.members}
            for attack, (name, measure) in product(ATTACKS, MEASURES.items()):
                # Seeds may remove other numbers of texts: the least of them.
                n_members, n_outsiders = (
                    int(roles.member.sum(axis=1).min()),
                    int(roles.outsider.sum()),
                )
                row = {**cohort.at, **head, "attack": attack, "measure": name}
                row |= {"texts": n_members, "others": n_outsiders, "seeds": len(roles.member)}
                why = why_not(source, attack) or _too_few(n_members, n_outsiders, measure)
                if why is None:
                    row |= _compare_with_gold(roles, attack, ours, gold, start, measure)
                yield {**row, "why": why}


def _too_few(texts: int, n_outsiders: int, measure: Measure) -> str | None:
    if texts < FEWEST_TEXTS:
        return f"{texts} texts; an estimate takes at least {FEWEST_TEXTS}"
    least = FEWEST_TEXTS if measure is attack_auc else FEWEST_OTHERS
    if n_outsiders < least:
        return f"{n_outsiders} held-out texts to compare with; this measure takes at least {least}"
    return None


def _compare_with_gold(
    roles: Roles,
    attack: str,
    ours: Sequence[AttackScores],
    gold: Sequence[AttackScores],
    start: Sequence[AttackScores] | None,
    measure: Measure,
) -> _Row:
    """Return the columns of ``schemas.MEMBERSHIP`` that need an estimate, by scores of seeds."""
    before: Sequence[AttackScores | None] = start or [None] * len(ours)
    every = zip(ours, gold, before, roles.member, strict=True)
    scored = [
        AttackedSeed(a[attack], b[attack], member, roles.outsider, c[attack] if c else None)
        for a, b, c, member in every
    ]
    against_gold = compare(scored, measure)
    row: _Row = {
        "value": against_gold.model.value,
        "low": against_gold.model.low,
        "high": against_gold.model.high,
    }
    for name, estimate in (("gold", against_gold.gold), ("difference", against_gold.difference)):
        row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    row["start"] = against_gold.start
    # Gold is the aim of texts that are gone alone; and a rate among few others is too unsure.
    if (share := against_gold.share) and roles.members == "removed" and measure is attack_auc:
        row |= share_columns("share", share) | {"share_withheld": share.reason}
    row["at_fault"] = not against_gold.gold.low <= CHANCE[measure] <= against_gold.gold.high
    low, high = against_gold.difference.low, against_gold.difference.high
    relation = "more than" if low > 0 else "less than" if high < 0 else "not told from"
    row["verdict"] = f"{relation} gold"
    return row
