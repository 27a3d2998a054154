"""The three disjoint sections: contamination, inference and evaluation.

"The cleaned data is split into a stratified 20% test set, with the remaining 80% split 50/50 into
contamination and inference sets" (the paper, data preparation).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts.tables import SECTIONS
from mamushi.errors import UserError

TOLERANCE = 1e-9


def check_shares(shares: Mapping[str, float]) -> None:
    """Raise ``UserError`` unless shares of known sections are given that sum to 1."""
    if unknown := [name for name in shares if name not in SECTIONS]:
        raise UserError(f"unknown section {unknown[0]!r}", do=f"known are {', '.join(SECTIONS)}")
    if min(shares.values(), default=-1) < 0 or abs(sum(shares.values()) - 1) > TOLERANCE:
        what = f"shares of the sections {dict(shares)}"
        raise UserError(what, do="give shares of at least 0 that sum to 1")


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
) -> NDArray[np.object_]:
    """Return the section of each row, shape (n,).

    Rows with a ready-made section keep it; the others are divided at random by ``shares`` within
    each stratum of each domain. A stratum's draw depends on ``seed`` and its own rows alone.
    """
    sections = np.array(ready, dtype=object)
    groups: dict[tuple[bool, str], list[int]] = {}
    for row, section in enumerate(ready):
        if section is None:
            groups.setdefault((bool(forget[row]), strata[row]), []).append(row)
    if not groups:
        return sections
    check_shares(shares)
    names = [name for name in SECTIONS if name in shares]
    portions = np.array([shares[name] for name in names], dtype=np.float64)
    owed = {domain: np.zeros(len(names)) for domain in (True, False)}
    for domain, stratum in sorted(groups):
        rows = np.array(groups[domain, stratum])
        counts, owed[domain] = apportion(len(rows), portions, owed[domain])
        shuffled = _generator(seed, "split", domain, stratum).permutation(rows)
        sections[shuffled] = np.repeat(np.array(names, dtype=object), counts)
    return sections


def limited(
    forget: NDArray[np.bool_],
    sections: NDArray[np.object_],
    limit: Mapping[str, int | None],
    seed: int,
) -> NDArray[np.bool_]:
    """Return which rows stay when each domain has at most ``limit`` rows in each section, (n,).

    A smaller limit keeps a subset of what a larger one keeps.
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
