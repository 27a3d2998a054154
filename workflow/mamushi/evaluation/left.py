"""What is left of texts in models that should not know them, beside the same of gold models.

Three tables with one question each: does an attack take the texts for members (``membership``), can
they be got out of the model (``memorization``), and a page of both (``left``). A number of a model
alone tells little: texts that are hard or common in themselves look like members to an attack, and
any model completes some of them. So each stands beside that of gold models, which never saw them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import INFERENCE, read_table
from mamushi.configuration import arms
from mamushi.errors import UserError
from mamushi.evaluation.attacks import (
    ATTACKS,
    CHANCE,
    FEWEST,
    FEWEST_OTHERS,
    FEWEST_SEEDS,
    Bools,
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
from mamushi.evaluation.sad import Floats

Rows = list[dict[str, Any]]

RETRAINING = "retraining"
GOLD, BETA0, BASE, CONTAMINATED = "gold", "beta0", "base", "contaminated"
MEASURES: Mapping[str, Measure] = {"auc": auc, "tpr": tpr}
COMPLETED = ("exact", "rouge_l", "edit")


@dataclass(frozen=True)
class Method:
    """A model that is asked what is left in it: an endpoint, or what was made for a list."""

    name: str
    selector: str | None = None
    beta: float | None = None
    start: str | None = None
    """The endpoint that has seen what was to be removed."""
    seen: bool = True
    """Whether it, or its start, was trained on the forget texts of the inference section, and not
    just on those that are planted."""

    @property
    def arm(self) -> str:
        """Its name among the models of a cell."""
        if self.selector is None:
            return self.name
        if self.name == RETRAINING:
            return arms.retrained(self.selector, self.beta or 0)
        return arms.unlearned(self.name, self.selector, self.beta or 0)


def methods(grid: Mapping[str, Any], start: str, ready: bool) -> list[Method]:
    """The models of a dataset and model that are looked at, gold aside.

    ``start`` is the endpoint from which unlearning starts; ``ready`` that it was trained before, on
    whatever there is.
    """
    found = [Method(BASE), Method(CONTAMINATED, seen=ready), Method(BETA0)]
    for selector, beta in product(grid["selectors"], grid["budgets"]):
        found.append(Method(RETRAINING, selector, float(beta), BETA0))
        found += [
            Method(name, selector, float(beta), start, seen=ready or start == BETA0)
            for name in grid["unlearners"]
        ]
    return found


@dataclass(frozen=True)
class Asked:
    """Which of n texts a row is about, seed by seed (S, n), and who the others are (n,)."""

    members: str
    planted: int | None
    member: Bools
    other: Bools


@dataclass(frozen=True)
class Texts:
    """The n texts that all models were asked about: ids, ``-1`` for those that are not planted."""

    ids: Sequence[str]
    ranked: Bools
    planted: NDArray[np.int64]


def _texts(rows: Mapping[str, Sequence[Any]]) -> Texts:
    often = np.array([-1 if n is None else n for n in rows["planted"]], dtype=np.int64)
    section = rows.get("section", [INFERENCE] * len(often))
    return Texts(list(rows["id"]), np.array([s == INFERENCE for s in section], dtype=bool), often)


def _asked(texts: Texts, method: Method, lists: Sequence[set[str]]) -> Iterator[Asked]:
    """The sets of texts that a method is asked about; ``lists`` are the removed ids by seed."""
    whole = np.tile(texts.ranked, (len(lists), 1))
    parts = {"forget": whole}
    if method.selector is not None:
        removed = np.array([[name in gone for name in texts.ids] for gone in lists], dtype=bool)
        parts = {"removed": whole & removed, "kept": whole & ~removed}
    for members, member in parts.items():
        if method.seen:
            yield Asked(members, None, member, ~texts.ranked)
        for often in sorted({*texts.planted.tolist()} - {-1, 0}) if members != "kept" else ():
            yield Asked(members, often, member & (texts.planted == often), texts.planted == 0)


def tables(
    grid: Mapping[str, Any],
    starts: Mapping[str, str],
    ready: Sequence[str],
    root: str | Path = "results",
) -> list[tuple[Table, pa.Table]]:
    """The tables ``membership``, ``memorization`` and ``left`` of all cells.

    ``starts`` names, by model, the endpoint from which unlearning starts, ``ready`` the models that
    were trained before. Raises ``UserError`` that names the first file that is missing, damaged, or
    of other texts.
    """
    found: dict[Table, Rows] = {schemas.MEMBERSHIP: [], schemas.MEMORIZATION: []}
    for dataset, model in product(grid["datasets"], grid["models"]):
        at = {"dataset": dataset, "model": model}
        chosen = methods(grid, starts[model], model in ready)
        found[schemas.MEMBERSHIP] += _membership(at, chosen, grid["seeds"], root)
        found[schemas.MEMORIZATION] += _memorization(at, chosen, grid["seeds"], root)
    found[schemas.LEFT] = _page(*found.values())
    return [(kind, pa.Table.from_pylist(rows, schema=kind.schema)) for kind, rows in found.items()]


def _membership(
    at: Mapping[str, Any], chosen: Sequence[Method], seeds: Sequence[int], root: str | Path
) -> Iterator[dict[str, Any]]:
    cells = [{**at, "seed": seed} for seed in seeds]

    def read(method: Method) -> list[dict[str, Any]]:
        # The base model is the same for every seed.
        among = [cells[0]] * len(cells) if method.name == BASE else cells
        return [
            _columns(
                paths.under(root, paths.MEMBERSHIP, **c, arm=method.arm), schemas.LIKELIHOODS, known
            )
            for c in among
        ]

    known: dict[str, Any] = {}
    gold, beta0, base = (read(Method(name)) for name in (GOLD, BETA0, BASE))
    texts = _texts(known)
    shadows = [np.array([per_token(one) for one in found]) for found in (gold, beta0)]

    def scores(
        found: Sequence[Mapping[str, Any]], *, is_base: bool = False
    ) -> list[dict[str, Any]]:
        by_seed = []
        for s, one in enumerate(found):
            each = simple_scores(one, None if is_base else base[s])
            if len(found) >= FEWEST_SEEDS:
                outside, inside = (np.delete(shadow, s, axis=0) for shadow in shadows)
                each["likelihood_ratio"] = likelihood_ratio(
                    per_token(one), outside, inside, texts.ranked
                )
            by_seed.append(each)
        return by_seed

    of_gold = scores(gold)
    of_start = {BETA0: scores(beta0)}
    for method in chosen:
        if method.start is not None and method.start not in of_start:
            of_start[method.start] = scores(read(Method(method.start)))
        found = scores(read(method), is_base=method.name == BASE)
        before = of_start[method.start] if method.start else None
        for asked in _asked(texts, method, _lists(method, cells, root)):
            for attack, (name, measure) in product(ATTACKS, MEASURES.items()):
                yield {
                    **_whose(at, method, asked),
                    "attack": attack,
                    "measure": name,
                    **_row(
                        asked,
                        [each.get(attack) for each in found],
                        [each.get(attack) for each in of_gold],
                        None
                        if before is None
                        else [each[attack] for each in before if attack in each],
                        measure,
                        _no_attack(attack, method, len(cells)),
                    ),
                }


def _no_attack(attack: str, method: Method, seeds: int) -> str | None:
    """Why this attack says nothing of this model, whatever the texts."""
    if attack == "reference" and method.name == BASE:
        return "the base model is what the attack compares with"
    if attack == "likelihood_ratio" and seeds < FEWEST_SEEDS:
        return f"needs gold and beta 0 models of at least {FEWEST_SEEDS} seeds, has {seeds}"
    return None


def _memorization(
    at: Mapping[str, Any], chosen: Sequence[Method], seeds: Sequence[int], root: str | Path
) -> Iterator[dict[str, Any]]:
    cells = [{**at, "seed": seed} for seed in seeds]
    known: dict[str, Any] = {}

    def read(method: Method) -> list[dict[tuple[float, str, str], Floats]]:
        among = [cells[0]] * len(cells) if method.name == BASE else cells
        return [
            _best(paths.under(root, paths.EXTRACTION, **c, arm=method.arm), known) for c in among
        ]

    gold = read(Method(GOLD))
    texts = _texts(known)
    of_start: dict[str, list[dict[tuple[float, str, str], Floats]]] = {}
    for method in chosen:
        found = read(method)
        if method.start is not None and method.start not in of_start:
            of_start[method.start] = read(Method(method.start))
        before = of_start[method.start] if method.start else None
        for asked in _asked(texts, method, _lists(method, cells, root)):
            for key in found[0]:
                yield {
                    **_whose(at, method, asked),
                    **dict(zip(("prefix", "decoding", "measure"), key, strict=True)),
                    **_row(
                        asked,
                        [each[key] for each in found],
                        [each[key] for each in gold],
                        None if before is None else [each[key] for each in before],
                        share,
                        None,
                    ),
                }


def _best(path: Path, known: dict[str, Any]) -> dict[tuple[float, str, str], Floats]:
    """By prefix, decoding and measure: the best of each text's completions, (n,)."""
    table = read_table(path, schemas.EXTRACTION).to_pydict()
    first = dict(zip(table["id"], table["planted"], strict=True))
    _same(path, known, {"id": list(first), "planted": list(first.values())})
    place = {name: i for i, name in enumerate(known["id"])}
    found: dict[tuple[float, str, str], Floats] = {}
    columns = (table[name] for name in ("id", "prefix", "decoding", *COMPLETED))
    for name, prefix, decoding, *values in zip(*columns, strict=True):
        for measure, value in zip(COMPLETED, values, strict=True):
            best = found.setdefault((prefix, decoding, measure), np.zeros(len(place)))
            best[place[name]] = max(best[place[name]], float(value))
    return found


def _columns(path: Path, kind: Table, known: dict[str, Any]) -> dict[str, Any]:
    """The columns of a table of texts, numbers as arrays."""
    table = read_table(path, kind).to_pydict()
    _same(path, known, {name: table[name] for name in ("id", "section", "planted")})
    return {
        name: np.array(values, dtype=np.float64)
        for name, values in table.items()
        if name not in known
    }


def _same(path: Path, known: dict[str, Any], here: Mapping[str, Any]) -> None:
    """All files are of the same texts, those of the first. Raises ``UserError`` for another."""
    known.update({} if known else here)
    if known != here:
        raise UserError(
            "is of other texts than the others", where=path, do="delete it and run again"
        )


def _lists(method: Method, cells: Sequence[Mapping[str, Any]], root: str | Path) -> list[set[str]]:
    """The ids in the method's removal list, by seed."""
    if method.selector is None:
        return [set()] * len(cells)
    beta = paths.beta(method.beta or 0)
    files = [
        paths.under(root, paths.REMOVAL, **cell, selector=method.selector, beta=beta)
        for cell in cells
    ]
    return [set(read_table(f, schemas.REMOVALS, ["id"])["id"].to_pylist()) for f in files]


def _whose(at: Mapping[str, Any], method: Method, asked: Asked) -> dict[str, Any]:
    return {
        **at,
        "method": method.name,
        "selector": method.selector,
        "beta": method.beta,
        "members": asked.members,
        "planted": asked.planted,
    }


def _row(
    asked: Asked,
    model: Sequence[Floats | None],
    gold: Sequence[Floats | None],
    start: Sequence[Floats] | None,
    measure: Measure,
    why: str | None,
) -> dict[str, Any]:
    """The columns of ``schemas.AGAINST_GOLD`` for these scores (n,) by seed."""
    # Seeds may remove other numbers of texts: the least of them.
    texts, others = int(asked.member.sum(axis=1).min()), int(asked.other.sum())
    counts: dict[str, Any] = {"texts": texts, "others": None if measure is share else others}
    found = {**counts, "seeds": len(asked.member)}
    why = why or _too_few(texts, others, measure)
    if why is not None:
        return {**found, "why": why}
    roles = [
        (member, asked.other if measure is not share else ~member & False)
        for member in asked.member
    ]
    seeds = [
        Scored(one, two, *role)
        for one, two, role in zip(model, gold, roles, strict=True)
        if one is not None and two is not None
    ]
    compared = compare(seeds, measure)
    for name in ("model", "gold", "difference"):
        each, prefix = getattr(compared, name), "" if name == "model" else f"{name}_"
        found |= {name if prefix else "value": each.value}
        found |= {f"{prefix}low": each.low, f"{prefix}high": each.high}
    if start:
        again = [Scored(s, s, *role) for s, role in zip(start, roles, strict=True)]
        found["start"] = compare(again, measure).model.value
    if measure in CHANCE:
        chance = CHANCE[measure]
        found["at_fault"] = not compared.gold.low <= chance <= compared.gold.high
    low, high = compared.difference.low, compared.difference.high
    found["verdict"] = "more than gold" if low > 0 else "less than gold" if high < 0 else "as gold"
    return found


def _too_few(texts: int, others: int, measure: Measure) -> str | None:
    if texts < FEWEST:
        return f"{texts} texts; an estimate takes at least {FEWEST}"
    needed: Mapping[Measure, int] = {auc: FEWEST, tpr: FEWEST_OTHERS}
    least = needed.get(measure, 0)
    if others < least:
        return f"{others} held-out texts to compare with; this measure takes at least {least}"
    return None


def _page(inferred: Rows, completed: Rows) -> Rows:
    """Of membership the AUC of the loss, and of the likelihood ratio or, with too few seeds for
    that, of the reference. Of memorization what is completed greedily from the longest prefix."""
    told = {row["attack"] for row in inferred if "value" in row}
    second = "likelihood_ratio" if "likelihood_ratio" in told else "reference"
    page = [
        {**row, "question": "member", "measure": f"{row['attack']} auc"}
        for row in inferred
        if row["measure"] == "auc" and row["attack"] in ("loss", second)
    ]
    longest = max((row["prefix"] for row in completed), default=None)
    page += [
        {**row, "question": "memorized"}
        for row in completed
        if (row["prefix"], row["decoding"]) == (longest, "greedy") and row["measure"] != "edit"
    ]
    names = set(schemas.LEFT.schema.names)
    return [{name: value for name, value in row.items() if name in names} for row in page]
