"""The models of all seeds of a dataset and model, and their NLL of held-out texts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.data.labels import TextProperties, places_of, read_texts
from mamushi.errors import UserError
from mamushi.evaluation.intervals import Effect, Floats, contrast
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, read_table

NOT_RAKED = "too few held-out forget texts"
"""Why nothing is known without word frequencies."""
RETRAINING_SOURCE = "retraining"
"""What tables call training without the examples of a list, beside the names of unlearners."""


class TextSet(NamedTuple):
    """Some of the held-out texts: their places ``rows`` (m,), the ``tokens`` of each that are
    predicted, and ``groups`` of those that are not independent, if any (m,)."""

    rows: NDArray[np.int64]
    tokens: Floats
    groups: NDArray[np.int64] | None

    def contrast(
        self,
        a: Floats,
        b: Floats,
        gap: tuple[Floats, Floats] | None = None,
        pooled: tuple[float, float] | None = None,
    ) -> Effect:
        """Compare models a and b on these texts (see ``intervals.contrast``), from the NLL of all
        texts (S, n); as a share of the ``gap`` between beta 0 and gold, where it is given."""
        ends = gap and (gap[0][:, self.rows], gap[1][:, self.rows])
        a, b = a[:, self.rows], b[:, self.rows]
        return contrast(a, b, self.tokens, self.groups, gap=ends, pooled=pooled)


@dataclass(frozen=True)
class Cohort:
    """A dataset and a model with several seeds. All seeds share the n held-out texts of the
    first."""

    dataset: str
    model: str
    seeds: tuple[int, ...]
    root: str | Path

    @property
    def cell(self) -> dict[str, str]:
        """Return the values of the columns that name it in tables."""
        return {"dataset": self.dataset, "model": self.model}

    @property
    def examples(self) -> Path:
        """Return the path of the table of all texts."""
        return paths.under(self.root, paths.EXAMPLES, dataset=self.dataset)

    def files(self, pattern: str, **wildcards: str) -> list[Path]:
        """Return the path of each seed, by further ``wildcards`` of the pattern."""
        return [
            paths.under(self.root, pattern, **self.cell, seed=s, **wildcards) for s in self.seeds
        ]

    @cached_property
    def held_out(self) -> pa.Table:
        """The ``id`` and the number of predicted ``tokens`` of the held-out texts."""
        return read_table(self.files(paths.NLL, arm="gold")[0], schemas.NLL, ["id", "tokens"])

    @cached_property
    def tokens(self) -> Floats:
        """How many tokens of each text are predicted (n,)."""
        return np.asarray(self.held_out["tokens"].to_numpy(), dtype=np.float64)

    @cached_property
    def texts(self) -> TextProperties:
        """The domains, labels and groups of the held-out texts."""
        return read_texts(self.examples, self.held_out["id"])

    @cached_property
    def is_raked(self) -> NDArray[np.bool_]:
        """Whether the NLL of a text is known without word frequencies (n,)."""
        return np.asarray(np.isfinite(self.nll("gold", deep=True).sum(axis=0)))

    def texts_of(self, domain: str, *, deep: bool = False) -> TextSet:
        """Return the texts of a domain with a token to predict; with ``deep``, those whose NLL is
        known without word frequencies."""
        inside = self.is_raked if deep else self.tokens > 0
        return self.subset(np.flatnonzero(inside & (self.texts.forget == (domain == FORGET))))

    def subset(self, rows: NDArray[np.int64]) -> TextSet:
        """Return the texts at some places."""
        groups = self.texts.groups
        return TextSet(rows, self.tokens[rows], None if groups is None else groups[rows])

    def nll(self, arm: str, *, deep: bool = False) -> Floats:
        """Return the summed NLL of each text (S, n), in nats, under the models of an arm; with
        ``deep`` without word frequencies, NaN for texts that are not sampled for it."""
        column, every = "deep" if deep else "nll", np.arange(len(self.tokens))
        files = self.files(paths.NLL, arm=arm)
        return np.array([self.sums(p, read_table(p, schemas.NLL), every, column) for p in files])

    def sums(
        self, path: Path, table: pa.Table, rows: NDArray[np.int64], column: str = "nll"
    ) -> Floats:
        """Return a ``column`` of summed NLL (n,) of a table that was read, NaN where it is null or
        absent. Raises ``UserError`` for one that lacks a text of ``rows``."""
        places = places_of(self.held_out["id"], table["id"])
        if (places[rows] < 0).any():
            raise UserError("lacks a text of the evaluation section", where=path, do="run again")
        return np.where(places < 0, np.nan, table[column].to_numpy()[places])


def cohorts(grid: Mapping[str, Any], root: str | Path) -> Iterator[Cohort]:
    """Yield the cohort of each dataset and model of a grid."""
    for dataset, model in product(grid["datasets"], grid["models"]):
        yield Cohort(dataset, model, tuple(grid["seeds"]), root)
