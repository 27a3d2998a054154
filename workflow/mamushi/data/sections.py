"""The three disjoint sections, contamination, inference and evaluation; and texts that are planted.

"The cleaned data is split into a stratified 20% test set, with the remaining 80% split 50/50 into
contamination and inference sets" (the paper, data preparation).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.data.groups import place_groups
from mamushi.errors import UserError
from mamushi.io.domains import CONTAMINATION, EVALUATION, FORGET, INFERENCE, SECTIONS

TOLERANCE = 1e-9
LABEL = "label_planted"
"""Column of the examples: how often a planted text is in the contamination section, 0 for one that
is held out in its place; null for all other texts."""


def apportion(
    n: int, shares: NDArray[np.float64], owed: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Divide ``n`` rows by largest remainder: counts that sum to ``n``, each its quota rounded.

    ``owed`` is what each section is short of from earlier strata, and is part of its remainder:
    many small strata then still meet the shares in total. Returns the counts and what is owed now.
    """
    quota = n * shares
    counts = np.floor(quota + TOLERANCE).astype(np.int64)
    # Only a section whose quota is not whole may be rounded up; so no count is off by 1 or more.
    rest = np.where(quota - counts > TOLERANCE, quota - counts + owed, -np.inf)
    for section in np.argsort(-np.round(rest, 9), kind="stable")[: n - counts.sum()]:
        counts[section] += 1
    return counts, owed + quota - counts


def split(
    forget: NDArray[np.bool_],
    strata: Sequence[str],
    ready: Sequence[str | None],
    shares: Mapping[str, float],
    seed: int,
    groups: Sequence[str | None] = (),
) -> NDArray[np.object_]:
    """Return the section of each row, shape (n,).

    Rows with a ready-made section keep it; the others are divided at random by ``shares`` within
    each stratum of each domain. A stratum's draw depends on ``seed`` and its own rows alone.

    Rows of one of the ``groups`` go into one section, the largest group first, each to where the
    rows before it leave the shares least met; rows without one then fill up what is left.
    """
    sections = np.array(ready, dtype=object)
    cells: dict[tuple[bool, str], list[int]] = {}
    for row, section in enumerate(ready):
        if section is None:
            cells.setdefault((bool(forget[row]), strata[row]), []).append(row)
    if not cells:
        return sections
    names = np.array([name for name in SECTIONS if shares.get(name)], dtype=object)
    portions = np.array([shares[name] for name in names], dtype=np.float64)
    placed = np.full(len(ready), -1)
    if grouped := [row for row, name in enumerate(groups) if not (name is None or ready[row])]:
        index = {kind: number for number, kind in enumerate([True, False, *cells])}
        own = [(bool(forget[row]), strata[row]) for row in grouped]
        kinds = np.array([(index[cell[0]], index[cell]) for cell in own])
        _, codes = np.unique([str(groups[row]) for row in grouped], return_inverse=True)
        placed[grouped] = place_groups(kinds, codes, portions, _generator(seed, "groups"))
        sections[placed >= 0] = names[placed[placed >= 0]]
    owed = {domain: np.zeros(len(names)) for domain in (True, False)}
    for domain, stratum in sorted(cells):
        rows = np.array(cells[domain, stratum])
        there, left = placed[rows][placed[rows] >= 0], portions
        if len(there):
            due = len(rows) * portions - np.bincount(there, minlength=len(names))
            left = np.maximum(due, 0) / max(np.maximum(due, 0).sum(), TOLERANCE)
            owed[domain] += due - (len(rows) - len(there)) * left
        counts, owed[domain] = apportion(len(rows) - len(there), left, owed[domain])
        shuffled = _generator(seed, "split", domain, stratum).permutation(rows[placed[rows] < 0])
        sections[shuffled] = np.repeat(names, counts)
    return sections


def joined(
    ready: Sequence[str | None], groups: Sequence[str | None], places: Sequence[str]
) -> list[str | None]:
    """Return the ready-made sections, where a row without one has that of its group. Raises
    ``UserError`` for a group with two of them."""
    first: dict[str, int] = {}
    for row, (section, group) in enumerate(zip(ready, groups, strict=True)):
        if section is not None and group is not None:
            other = first.setdefault(group, row)
            if ready[other] != section:
                what = f"group {group!r} is in the section {section!r} here, and in "
                what += f"{ready[other]!r} in {places[other]}"
                do = "give each group one section, or set the dataset's 'group' to null"
                raise UserError(what, where=places[row], do=do)
    known = [None if group is None else first.get(group) for group in groups]
    return [
        ready[other] if section is None and other is not None else section
        for section, other in zip(ready, known, strict=True)
    ]


def limited(
    forget: NDArray[np.bool_],
    sections: NDArray[np.object_],
    limit: Mapping[str, int | None],
    seed: int,
) -> NDArray[np.bool_]:
    """Return which rows stay when each domain has at most ``limit`` rows in each section, (n,).

    A smaller limit keeps a subset of what a larger one keeps. Texts are drawn, not groups: a group
    of which fewer texts stay is less of a dependence, and the numbers are as they were asked for.
    """
    kept = np.ones(len(forget), dtype=bool)
    for domain, most in ((True, limit["forget"]), (False, limit["retain"])):
        for section in SECTIONS:
            rows = np.flatnonzero((forget == domain) & (sections == section))
            if most is not None and len(rows) > most:
                order = _generator(seed, "limit", domain, section).permutation(rows)
                kept[order[most:]] = False
    return kept


def _generator(seed: int, *what: object) -> np.random.Generator:
    """Return a random stream for one purpose, independent of all others of the same seed."""
    return np.random.default_rng([seed, zlib.crc32(repr(what).encode())])


def plant(table: pa.Table, planted: Mapping[str, Any], seed: int) -> pa.Table:
    """Return the examples with copies of planted texts at the end, in the contamination section:
    canaries (Carlini et al. 2019). One shuffle draws which are repeated and which are held out, so
    that nothing but training tells them apart. Texts of a group with others are not planted, since
    those would stay behind in the inference section.

    ``planted`` has ``texts``, how many are planted with each number of ``repeats``. A planted text
    stays in the inference section; as many texts as are planted in all leave it for the evaluation
    section. Raises ``UserError`` for too few forget texts, and without the sections.
    """

    def mistake(what: str, do: str) -> UserError:
        return UserError(what, where="planted", do=do)

    section, domain = (np.array(table[n].to_pylist(), dtype=object) for n in ("section", "domain"))
    if missing := {CONTAMINATION, INFERENCE, EVALUATION} - set(section):
        what = f"there is no {min(missing)} section to plant in or to hold out"
        raise mistake(what, "give the section a share, or plant nothing")
    repeats, each = list(planted["repeats"]), int(planted["texts"])
    sizes = Counter(groups := table["group"].to_pylist())
    alone = np.array([group is None or sizes[group] == 1 for group in groups])
    there = np.flatnonzero((domain == FORGET) & (section == INFERENCE) & alone)
    needed = 2 * each * len(repeats)
    if needed >= len(there):
        what = f"takes {needed} of the {len(there)} forget texts of the inference section"
        what += "" if alone.all() else " that share no group"
        raise mistake(what, "lower planted.texts or give the dataset more texts")
    drawn = np.random.default_rng([seed, len(repeats), each]).permutation(there)[:needed]
    often = np.full(len(table), -1, dtype=np.int64)
    often[drawn] = np.repeat([*repeats, 0], [each] * len(repeats) + [needed // 2])
    section[often == 0] = EVALUATION
    table = _with(table, "section", section)
    table = table.append_column(LABEL, pa.array(often, pa.int64(), mask=often < 0))
    rows = np.repeat(np.arange(len(table)), np.maximum(often, 0))
    copies = table.take(rows)
    number = np.arange(len(rows)) - np.searchsorted(rows, rows)
    pairs = zip(copies["id"].to_pylist(), number.tolist(), strict=True)
    copies = _with(copies, "id", [f"{name}#planted{n + 1}" for name, n in pairs])
    copies = _with(copies, "section", [CONTAMINATION] * len(rows))
    return pa.concat_tables([table, copies])


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
