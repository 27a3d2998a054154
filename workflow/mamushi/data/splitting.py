"""The three disjoint sections, contamination, inference and evaluation.

"The cleaned data is split into a stratified 20% test set, with the remaining 80% split 50/50 into
contamination and inference sets" (the paper, data preparation).
"""

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mamushi.data.groups import place_groups
from mamushi.errors import UserError
from mamushi.io.domains import SECTIONS

_TOLERANCE = 1e-9


def split_sections(
    forget: NDArray[np.bool_],
    strata: Sequence[str],
    ready: Sequence[str | None],
    shares: Mapping[str, float],
    seed: int,
    groups: Sequence[str | None] = (),
) -> NDArray[np.object_]:
    """Return the section of each row, shape (n,).

    Rows with a ready-made section keep it; the others are divided at random by ``shares`` within
    each stratum of each domain, by ``seed`` and the stratum's own rows alone. Rows of one of the
    ``groups`` go into one section, the largest group first, each to where the shares are least met;
    rows without one then fill up what is left.
    """
    sections = np.array(ready, dtype=object)
    frame = pd.DataFrame({"forget": forget, "stratum": strata}, dtype=object)
    by_cell = frame[pd.isna(sections)].groupby(["forget", "stratum"], sort=False)
    cells = {cell: rows.index.to_numpy() for cell, rows in by_cell}
    if not cells:
        return sections
    names = np.array([name for name in SECTIONS if shares.get(name)], dtype=object)
    portions = np.array([shares[name] for name in names], dtype=np.float64)
    placed = np.full(len(ready), -1)
    if grouped := [row for row, name in enumerate(groups) if not (name is None or ready[row])]:
        index = {kind: number for number, kind in enumerate([True, False, *cells])}
        cell_of_row = [(bool(forget[row]), strata[row]) for row in grouped]
        kinds = np.array([(index[cell[0]], index[cell]) for cell in cell_of_row])
        _, codes = np.unique([str(groups[row]) for row in grouped], return_inverse=True)
        placed[grouped] = place_groups(kinds, codes, portions, _generator(seed, "groups"))
        sections[placed >= 0] = names[placed[placed >= 0]]
    owed = {domain: np.zeros(len(names)) for domain in (True, False)}
    for domain, stratum in sorted(cells):
        rows = cells[domain, stratum]
        grouped_parts, left = placed[rows][placed[rows] >= 0], portions
        n = len(rows) - len(grouped_parts)
        if len(grouped_parts):
            due = len(rows) * portions - np.bincount(grouped_parts, minlength=len(names))
            left = np.maximum(due, 0) / max(np.maximum(due, 0).sum(), _TOLERANCE)
            owed[domain] += due - n * left
        # By largest remainder, with what is owed from earlier strata, so that many small ones meet
        # the shares in total. Only a quota that is not whole is rounded up: no count is off by 1.
        counts = np.floor((quota := n * left) + _TOLERANCE).astype(np.int64)
        remainder = np.where(quota - counts > _TOLERANCE, quota - counts + owed[domain], -np.inf)
        counts[np.argsort(-np.round(remainder, 9), kind="stable")[: n - counts.sum()]] += 1
        owed[domain] = owed[domain] + quota - counts
        shuffled = _generator(seed, "split", domain, stratum).permutation(rows[placed[rows] < 0])
        sections[shuffled] = np.repeat(names, counts)
    return sections


def with_group_sections(
    ready: Sequence[str | None], groups: Sequence[str | None], places: Sequence[str]
) -> list[str | None]:
    """Return the ready-made sections, where a row without one has that of its group. Raises
    ``UserError`` for a group with two of them."""
    frame = pd.DataFrame({"section": ready, "group": groups}, dtype=object)
    of_group = frame["group"].map(frame.dropna().groupby("group")["section"].first())
    filled = frame["section"].fillna(of_group)
    if (clash := (filled != of_group) & of_group.notna()).any():
        row = int(clash.argmax())
        do = "give each group one section, or set the dataset's 'group' to null"
        raise UserError(f"group {groups[row]!r} is in two sections", where=places[row], do=do)
    return [section if isinstance(section, str) else None for section in filled]


def limited(
    forget: NDArray[np.bool_],
    sections: NDArray[np.object_],
    limit: Mapping[str, int | None],
    seed: int,
) -> NDArray[np.bool_]:
    """Return which rows stay when each domain has at most ``limit`` rows in each section, (n,); of
    a smaller limit a subset of those of a larger one. Texts are drawn, not groups."""
    stays = np.ones(len(forget), dtype=bool)
    for domain, most in ((True, limit.get("forget")), (False, limit.get("retain"))):
        for section in SECTIONS:
            rows = np.flatnonzero((forget == domain) & (sections == section))
            if most is not None and len(rows) > most:
                order = _generator(seed, "limit", domain, section).permutation(rows)
                stays[order[most:]] = False
    return stays


def _generator(seed: int, *purpose: object) -> np.random.Generator:
    """Return a random stream for one purpose, independent of all others of the same seed."""
    return np.random.default_rng([seed, zlib.crc32(repr(purpose).encode())])
