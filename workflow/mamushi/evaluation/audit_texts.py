"""The audit of models, text by text: what they still reveal of texts that they should not know.

Does an attack take the texts for members, and can they be got out of the model? Each number stands
beside that of gold models, which never saw them: common texts look like members to any attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import INFERENCE, read_table
from mamushi.errors import UserError
from mamushi.evaluation.attacks import (
    ATTACKS,
    CHANCE,
    FEWEST,
    FEWEST_OTHERS,
    FEWEST_SEEDS,
    Bools,
    Compared,
    Measure,
    Scored,
    auc,
    compare,
    likelihood_ratio,
    per_token,
    share,
    simple_scores,
    tpr,
)
from mamushi.evaluation.cohort import RETRAINING, Cohort, Source, cohorts
from mamushi.evaluation.sad import Floats

Row = dict[str, Any]
Key = str | tuple[float, str, str]  # An attack, or a prefix, decoding and measure of completions.
Scores = Mapping[Any, Floats]  # Scores (n,) of one model, by ``Key``.
Kind = tuple[Key, Row, Measure]  # A measure of scores, and its columns.

GOLD, BETA0, BASE, CONTAMINATED = "gold", "beta0", "base", "contaminated"
MEASURES: Mapping[str, Measure] = {"auc": auc, "tpr": tpr}
COMPLETED = ("exact", "rouge_l")


@dataclass(frozen=True)
class Audited:
    """A model that is audited, and its start; ``seen``: either was trained on the forget texts of
    the inference section, and not just on those that are planted."""

    source: Source
    start: str | None = None
    seen: bool = True


def audited(grid: Mapping[str, Any], start: str, ready: bool) -> list[Audited]:
    """Return the models that are audited, gold aside. ``start`` is the endpoint from which
    unlearning starts; ``ready`` that it was trained before, on whatever there is."""
    ends = {BASE: True, CONTAMINATED: ready, BETA0: True}
    found = [Audited(Source(name), seen=seen) for name, seen in ends.items()]
    for pair in product(grid["selectors"], map(float, grid["budgets"])):
        found.append(Audited(Source(RETRAINING, *pair), BETA0))
        seen = ready or start == BETA0
        found += [Audited(Source(name, *pair), start, seen) for name in grid["unlearners"]]
    return found


@dataclass(frozen=True)
class Texts:
    """The n texts that all models were asked about; ``-1`` for those that are not planted."""

    ids: Sequence[str]
    ranked: Bools
    planted: NDArray[np.int64]


@dataclass(frozen=True)
class Roles:
    """Which of n texts a row is about, seed by seed (S, n), and who the others are (n,)."""

    members: str
    planted: int | None
    member: Bools
    other: Bools


def audit_texts(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    ready: Sequence[str],
    root: str | Path = "results",
) -> list[tuple[Table, pa.Table]]:
    """Return the tables ``membership``, ``memorization`` and ``left`` of all cells.

    ``starts`` and ``ready`` as in ``audited``, by model. Raises ``UserError`` for a file that is
    missing or of other texts.
    """
    inferred: list[Row] = []
    completed: list[Row] = []
    for cohort in cohorts(grid, root):
        models = audited(grid, starts[cohort.model], cohort.model in ready)
        inferred += _membership(cohort, models)
        completed += _memorization(cohort, models)
    found = {
        schemas.MEMBERSHIP: inferred,
        schemas.MEMORIZATION: completed,
        schemas.LEFT: _page(inferred, completed),
    }
    return [(kind, pa.Table.from_pylist(rows, schema=kind.schema)) for kind, rows in found.items()]


def _membership(cohort: Cohort, models: Sequence[Audited]) -> Iterator[Row]:
    about: dict[str, Any] = {}

    def read(source: Source) -> list[dict[str, Floats]]:
        return [_statistics(path, about) for path in _files(cohort, paths.MEMBERSHIP, source)]

    gold, beta0, base = (read(Source(name)) for name in (GOLD, BETA0, BASE))
    texts = _texts(about)
    shadows = [np.array([per_token(one) for one in found]) for found in (gold, beta0)]

    @cache
    def scores(source: Source) -> list[Scores]:
        found: list[Scores] = []
        for seed, one in enumerate(read(source)):
            each = simple_scores(one, None if source.source == BASE else base[seed])
            if len(cohort.seeds) >= FEWEST_SEEDS:
                outside, inside = (np.delete(shadow, seed, axis=0) for shadow in shadows)
                ratio = likelihood_ratio(per_token(one), outside, inside, texts.ranked)
                each["likelihood_ratio"] = ratio
            found.append(each)
        return found

    def why_not(source: Source, attack: Key) -> str | None:
        if attack == "reference" and source.source == BASE:
            return "the base model is what the attack compares with"
        if attack == "likelihood_ratio" and len(cohort.seeds) < FEWEST_SEEDS:
            return f"needs at least {FEWEST_SEEDS} seeds, has {len(cohort.seeds)}"
        return None

    kinds: list[Kind] = [
        (attack, {"attack": attack, "measure": name}, measure)
        for attack, (name, measure) in product(ATTACKS, MEASURES.items())
    ]
    yield from _rows(cohort, models, texts, scores, kinds, why_not)


def _statistics(path: Path, about: dict[str, Any]) -> dict[str, Floats]:
    """Read what a model makes of each text (n,)."""
    table = read_table(path, schemas.LIKELIHOODS).to_pydict()
    _check_texts(path, about, {name: table.pop(name) for name in ("id", "section", "planted")})
    return {name: np.array(values, dtype=np.float64) for name, values in table.items()}


def _memorization(cohort: Cohort, models: Sequence[Audited]) -> Iterator[Row]:
    about: dict[str, Any] = {}

    @cache
    def scores(source: Source) -> list[Scores]:
        return [_best(path, about) for path in _files(cohort, paths.EXTRACTION, source)]

    columns = ("prefix", "decoding", "measure")
    kinds: list[Kind] = [
        (key, dict(zip(columns, key, strict=True)), share) for key in scores(Source(GOLD))[0]
    ]
    yield from _rows(cohort, models, _texts(about), scores, kinds, lambda source, key: None)


def _best(path: Path, about: dict[str, Any]) -> Scores:
    """Read the best of each text's completions (n,), by prefix, decoding and measure."""
    table = read_table(path, schemas.EXTRACTION).to_pydict()
    first = dict(zip(table["id"], table["planted"], strict=True))
    _check_texts(path, about, {"id": list(first), "planted": list(first.values())})
    place = {name: i for i, name in enumerate(first)}
    found: dict[Key, Floats] = {}
    columns = (table[name] for name in ("id", "prefix", "decoding", *COMPLETED))
    for name, prefix, decoding, *values in zip(*columns, strict=True):
        for measure, value in zip(COMPLETED, values, strict=True):
            best = found.setdefault((prefix, decoding, measure), np.zeros(len(place)))
            best[place[name]] = max(best[place[name]], float(value))
    return found


def _files(cohort: Cohort, pattern: str, source: Source) -> list[Path]:
    """Return the file of each seed; the base model is the same for all, and asked once."""
    files = cohort.files(pattern, arm=source.arm)
    return [files[0]] * len(files) if source.source == BASE else files


def _check_texts(path: Path, about: dict[str, Any], here: Mapping[str, Any]) -> None:
    """Keep the texts of the first file. Raises ``UserError`` for one of others."""
    about.update({} if about else here)
    if about != here:
        problem = "is of other texts than the others"
        raise UserError(problem, where=path, do="delete it and run again")


def _texts(about: Mapping[str, Sequence[Any]]) -> Texts:
    often = np.array([-1 if n is None else n for n in about["planted"]], dtype=np.int64)
    sections = about.get("section", [INFERENCE] * len(often))
    return Texts(about["id"], np.array([s == INFERENCE for s in sections], dtype=bool), often)


def _roles(texts: Texts, model: Audited, lists: Sequence[Sequence[str]]) -> Iterator[Roles]:
    """Yield the sets of texts that a model is asked about; ``lists`` are removed ids by seed."""
    whole = np.tile(texts.ranked, (len(lists), 1))
    parts = {"forget": whole}
    if model.source.selector is not None:
        gone = map(set, lists)
        removed = np.array([[name in ids for name in texts.ids] for ids in gone], dtype=bool)
        parts = {"removed": whole & removed, "kept": whole & ~removed}
    for members, member in parts.items():
        if model.seen:
            yield Roles(members, None, member, ~texts.ranked)
        for often in sorted({*texts.planted.tolist()} - {-1, 0}) if members != "kept" else ():
            yield Roles(members, often, member & (texts.planted == often), texts.planted == 0)


def _rows(
    cohort: Cohort,
    models: Sequence[Audited],
    texts: Texts,
    scores: Callable[[Source], list[Scores]],
    kinds: Sequence[Kind],
    why_not: Callable[[Source, Key], str | None],
) -> Iterator[Row]:
    gold = scores(Source(GOLD))
    for model in models:
        source, ours = model.source, scores(model.source)
        start = scores(Source(model.start)) if model.start else None
        for roles in _roles(texts, model, cohort.lists(source)):
            head = {"method": source.source, "selector": source.selector, "beta": source.beta}
            head |= {"members": roles.members, "planted": roles.planted}
            for key, columns, measure in kinds:
                # Seeds may remove other numbers of texts: the least of them.
                asked, others = int(roles.member.sum(axis=1).min()), int(roles.other.sum())
                row = {**cohort.at, **head, **columns, "texts": asked, "seeds": len(roles.member)}
                row["others"] = None if measure is share else others
                why = why_not(source, key) or _too_few(asked, others, measure)
                if why is None:
                    row |= _compare_with_gold(roles, key, ours, gold, start, measure)
                yield {**row, "why": why}


def _too_few(texts: int, others: int, measure: Measure) -> str | None:
    if texts < FEWEST:
        return f"{texts} texts; an estimate takes at least {FEWEST}"
    least = FEWEST if measure is auc else FEWEST_OTHERS if measure is tpr else 0
    if others < least:
        return f"{others} held-out texts to compare with; this measure takes at least {least}"
    return None


def _compare_with_gold(
    roles: Roles,
    key: Key,
    ours: Sequence[Scores],
    gold: Sequence[Scores],
    start: Sequence[Scores] | None,
    measure: Measure,
) -> Row:
    """Return the columns of ``schemas.AGAINST_GOLD`` that need an estimate, by scores of seeds."""
    none = np.zeros_like(roles.other)
    sets = [(member, none if measure is share else roles.other) for member in roles.member]

    def compared(one: Sequence[Scores], two: Sequence[Scores]) -> Compared:
        every = zip(one, two, sets, strict=True)
        return compare([Scored(a[key], b[key], *members) for a, b, members in every], measure)

    found = compared(ours, gold)
    row: Row = {"value": found.model.value, "low": found.model.low, "high": found.model.high}
    for name, each in (("gold", found.gold), ("difference", found.difference)):
        row |= {name: each.value, f"{name}_low": each.low, f"{name}_high": each.high}
    if start is not None:
        row["start"] = compared(start, start).model.value
    if measure in CHANCE:
        row["at_fault"] = not found.gold.low <= CHANCE[measure] <= found.gold.high
    low, high = found.difference.low, found.difference.high
    told = "more than" if low > 0 else "less than" if high < 0 else "not told from"
    row["verdict"] = f"{told} gold"
    return row


def _page(inferred: Sequence[Row], completed: Sequence[Row]) -> list[Row]:
    """Return the page: the AUC of the loss, and of the likelihood ratio or, with too few seeds for
    that, of the reference; what is completed greedily from the longest prefix."""
    estimated = {row["attack"] for row in inferred if "value" in row}
    second = "likelihood_ratio" if "likelihood_ratio" in estimated else "reference"
    page = [
        {**row, "question": "member", "measure": f"{row['attack']} auc"}
        for row in inferred
        if row["measure"] == "auc" and row["attack"] in ("loss", second)
    ]
    longest = max((row["prefix"] for row in completed), default=None)
    page += [
        {**row, "question": "memorized"}
        for row in completed
        if (row["prefix"], row["decoding"]) == (longest, "greedy")
    ]
    names = schemas.LEFT.schema.names
    return [{name: value for name, value in row.items() if name in names} for row in page]
