"""What a loader returns: the rows of a data set as they are in its files, not yet cleaned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.data.cells import take
from mamushi.data.duplicates import Duplicates, find_duplicates, first_of_key
from mamushi.errors import UserError

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Raw:
    """Parallel columns with one entry a row, in the order of the files; docs/templates/two_files.py
    is a loader. What copies are is said by methods, of which a room's subclass has its own."""

    ids: Sequence[str]
    texts: Sequence[str]
    forget: NDArray[np.bool_]  # of the forget domain p1; else of the retain domain p2
    section: Sequence[str | None]  # that a row comes with; None where it is to be split
    stratum: Sequence[str]  # within each, in each domain, sections have their shares
    places: Sequence[str]  # for messages: train.csv, row 17 (line 43)
    labels: Mapping[str, Sequence[Any] | NDArray[Any]] = field(default_factory=dict)
    """Columns that ride along, as ``label_<name>``; those of rooms, which are no labels, begin with
    ``_``."""
    group: Sequence[str | None] | None = None  # as a thread or an author; None for a text alone
    log_density_ratio: NDArray[np.float64] | None = None  # log p1(text)/p2(text) in nats, if known
    sources: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of each file by its name
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows that were left out, by reason
    extra_metadata: Mapping[str, Any] = field(default_factory=dict)  # of the examples, as JSON

    def take(self, chosen: NDArray[Any], **changes: Any) -> Self:
        """Return some rows, as ``cells.take``, with ``changes`` of columns."""
        names = ("ids", "texts", "forget", "section", "stratum", "places", "group")
        columns = {n: take(getattr(self, n), chosen) for n in (*names, "log_density_ratio")}
        labels = {name: take(column, chosen) for name, column in self.labels.items()}
        return replace(self, **{**columns, "labels": labels, **changes})

    def copies(self, rows: Rows, texts: Sequence[str], **settings: Any) -> Duplicates:
        """Return which of the cleaned ``texts`` of ``rows`` are copies, see ``find_duplicates``."""
        return find_duplicates(texts, self.forget[rows], **settings)

    def join_copies(self, rows: Rows, roots: Rows) -> Self:
        """Return the rows with what copies say of the first texts of their clusters, which are at
        ``roots`` (n,) of ``rows``: nothing."""
        return self

    def unlisted_rows(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of ``rows`` a removal would not take along as copies: none."""
        return np.zeros(len(rows), dtype=np.bool_)

    def counts(self, examples: pa.Table) -> dict[str, Any]:
        """Return further counts for the card, of the table of examples: none."""
        return {}


def check_unique(ids: Sequence[str], places: Sequence[str]) -> None:
    """Raise ``UserError`` with the first id that occurs twice, and both of its rows."""
    first = first_of_key(ids)
    for row in np.flatnonzero(first != np.arange(len(first)))[:1].tolist():
        problem = f"id {ids[row]!r} is there twice, first in {places[int(first[row])]}"
        raise UserError(problem, where=places[row], do="give every row an id of its own")
