"""The three disjoint sections, contamination, inference and evaluation.

"The cleaned data is split into a stratified 20% test set, with the remaining 80% split 50/50 into
contamination and inference sets" (the paper, data preparation).
"""

import zlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mamushi.data.groups import place_groups
from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.io.domains import FORGET, RETAIN, SECTIONS

_TOLERANCE = 1e-9


def split_sections(raw: Raw, shares: Mapping[str, float], seed: int) -> NDArray[np.object_]:
    """Return the section of each row (n,). Rows with a ready-made section keep it, and the rest of
    their group joins them. The others are divided at random by ``shares`` within each stratum of
    each domain, by ``seed`` and the stratum's own rows alone. Rows of one group go into one
    section, the largest group first, each to where the shares are least met; rows without one then
    fill up what is left. Raises ``UserError`` for a group with two ready-made sections."""
    names = np.array([name for name in SECTIONS if shares.get(name)], dtype=object)
    portions = np.array([shares[name] for name in names], dtype=np.float64)
    sections, placed = _ready_sections(raw), np.full(len(raw.ids), -1)
    columns = {"forget": raw.forget, "stratum": raw.stratum, "group": raw.group}
    frame = pd.DataFrame(columns, dtype=object)[pd.isna(sections)]
    by_cell = frame.groupby(["forget", "stratum"], sort=False)
    grouped = frame["group"].notna()
    if grouped.any():
        # Each row is of a domain and of a stratum in it.
        kinds = np.column_stack([~frame["forget"].astype(bool), 2 + by_cell.ngroup()])[grouped]
        codes = pd.factorize(frame["group"][grouped], sort=True)[0]
        rng = _random_stream(seed, "groups")
        placed[frame.index[grouped]] = place_groups(kinds, codes, portions, rng)
        sections[placed >= 0] = names[placed[placed >= 0]]
    owed = {domain: np.zeros(len(names)) for domain in (True, False)}
    for (domain, stratum), index in sorted(by_cell.groups.items()):
        rows, left = index.to_numpy(), portions
        parts = placed[rows]
        n = int((parts < 0).sum())
        if n < len(rows):
            due = len(rows) * portions - np.bincount(parts[parts >= 0], minlength=len(names))
            left = np.maximum(due, 0) / max(np.maximum(due, 0).sum(), _TOLERANCE)
            owed[domain] += due - n * left
        # By largest remainder, with what is owed from earlier strata, so that many small ones meet
        # the shares in total. Only a quota that is not whole is rounded up: no count is off by 1.
        counts = np.floor((quota := n * left) + _TOLERANCE).astype(np.int64)
        remainder = np.where(quota - counts > _TOLERANCE, quota - counts + owed[domain], -np.inf)
        counts[np.argsort(-np.round(remainder, 9), kind="stable")[: n - counts.sum()]] += 1
        owed[domain] = owed[domain] + quota - counts
        shuffled = _random_stream(seed, "split", domain, stratum).permutation(rows[parts < 0])
        sections[shuffled] = np.repeat(names, counts)
    return sections


def _ready_sections(raw: Raw) -> NDArray[np.object_]:
    """Return the ready-made section of each row or of its group, else None or NaN."""
    frame = pd.DataFrame({"section": raw.section, "group": raw.group}, dtype=object)
    of_group = frame.groupby("group")["section"].transform("first")
    sections = frame["section"].fillna(of_group)
    if (clash := (sections != of_group) & of_group.notna()).any():
        row = int(clash.argmax())
        problem = f"group {frame['group'][row]!r} is in two sections"
        do = "give each group one section, or set the dataset's 'group' to null"
        raise UserError(problem, where=raw.places[row], do=do)
    return np.array(sections, dtype=object)


def within_limits(
    raw: Raw, sections: NDArray[np.object_], limit: Mapping[str, int | None], seed: int
) -> NDArray[np.bool_]:
    """Return which rows (n,) stay when each domain has at most ``limit`` in each section: of a
    smaller limit a subset of those of a larger one."""
    stays = np.ones(len(sections), dtype=bool)
    for domain, most in ((True, limit.get(FORGET)), (False, limit.get(RETAIN))):
        for section in SECTIONS if most is not None else ():
            rows = np.flatnonzero((raw.forget == domain) & (sections == section))
            stays[_random_stream(seed, "limit", domain, section).permutation(rows)[most:]] = False
    return stays


def _random_stream(seed: int, *purpose: object) -> np.random.Generator:
    """Return a random stream for one purpose, independent of all others of the same seed."""
    return np.random.default_rng([seed, zlib.crc32(repr(purpose).encode())])
