"""What a loader returns: the rows of a data set as they are in its files, not yet cleaned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError


@dataclass(frozen=True)
class Raw:
    """Parallel columns with one entry a row, in the order of the files. What else a loader, a file
    in ``data/loaders``, declares is in docs/templates/two_files.py."""

    ids: Sequence[str]
    texts: Sequence[str]
    forget: NDArray[np.bool_]
    """Whether a row belongs to the forget domain p1; otherwise to the retain domain p2."""
    section: Sequence[str | None]
    """The section that a row comes with; None where it is to be split."""
    stratum: Sequence[str]
    """The split keeps the shares of the sections within each stratum of each domain."""
    places: Sequence[str]
    """Where a row is, for messages: ``train.csv, row 17 (line 43)``."""
    labels: Mapping[str, Sequence[Any] | NDArray[Any]] = field(default_factory=dict)
    group: Sequence[str | None] | None = None
    """Texts that share one are not independent, as those of a thread or an author; None alone."""
    log_density_ratio: NDArray[np.float64] | None = None
    """The exact log p1(text)/p2(text) in nats, where it is known."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file that was read, by file name."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Rows that the loader left out itself, by reason; they are in none of the columns."""
    given: Sequence[str | None] | None = None
    """Of a corpus that nobody labelled, what a row is known to be that is not of it: `example` or
    `wanted`. Then ``forget`` is of examples."""
    answers: Sequence[str | None] | None = None
    """Whether people said that a row is of the forget domain, `yes` or `no`."""
    documents: Sequence[str] | None = None
    """Of windows of documents that go as a whole, the ids of these."""
    screened: Mapping[str, int] = field(default_factory=dict)
    """Of a corpus that a screen was let on: its ``texts``, and how many ``passed``."""
    margin: NDArray[np.float64] | None = None
    """Of such a corpus, by how much a row is above the lowest one that passed."""


def check_unique(ids: Sequence[str], places: Sequence[str]) -> None:
    """Raise ``UserError`` with the first id that occurs twice, and both of its rows."""
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in seen:
            what = f"id {name!r} is there twice, first in {places[seen[name]]}"
            raise UserError(what, where=places[row], do="give every row an id of its own")
        seen[name] = row
