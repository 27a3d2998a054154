"""Name the models that a row of a table is about, and read their NLL of held-out texts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config import arms
from mamushi.data.labels import Labelled, read_labels
from mamushi.errors import UserError
from mamushi.evaluation.crossed import Effect, contrast
from mamushi.evaluation.sad import Floats
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, read_table

NOT_RAKED = "too few held-out forget texts"
"""Why nothing is known without word frequencies."""
RETRAINING_SOURCE = "retraining"
"""What tables call training without the examples of a list, beside the names of unlearners."""


@dataclass(frozen=True)
class ModelSource:
    """The models of all seeds that were made in one way.

    ``source`` is an endpoint, ``RETRAINING_SOURCE`` or the name of an unlearner. The last two have
    the ``selector`` of their list and its budget ``beta``.
    """

    source: str
    selector: str | None = None
    beta: float | None = None

    @property
    def arm(self) -> str:
        """Return the name of the arm among the models of a cell."""
        if self.selector is None or self.beta is None:
            return self.source
        method = arms.RETRAINING if self.source == RETRAINING_SOURCE else self.source
        return arms.unlearned(method, self.selector, self.beta)


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
        """Compare models a and b on these texts (see ``crossed.contrast``), from the NLL of all
        texts (S, n); as a share of the ``gap`` between beta 0 and gold, where it is given."""
        beta0, gold = (None, None) if gap is None else (nll[:, self.rows] for nll in gap)
        a, b, ends = a[:, self.rows], b[:, self.rows], {"beta0": beta0, "gold": gold}
        return contrast(a, b, self.tokens, self.groups, **ends, pooled=pooled)


@dataclass(frozen=True)
class Cohort:
    """A dataset and a model with several seeds. All seeds share the held-out texts of the first."""

    dataset: str
    model: str
    seeds: tuple[int, ...]
    root: str | Path

    @property
    def at(self) -> dict[str, str]:
        """Return the values of the columns that name it in tables."""
        return {"dataset": self.dataset, "model": self.model}

    def files(self, pattern: str, **wildcards: str) -> list[Path]:
        """Return the path of each seed, by further ``wildcards`` of the pattern."""
        return [paths.under(self.root, pattern, **self.at, seed=s, **wildcards) for s in self.seeds]

    def lists(self, source: ModelSource) -> list[list[str]]:
        """Return the ids in the list of each seed, (S,) lists."""
        listed = {"selector": str(source.selector), "beta": paths.beta(source.beta or 0.0)}
        files = self.files(paths.REMOVAL, **listed)
        return [read_table(f, schemas.REMOVALS, ["id"])["id"].to_pylist() for f in files]

    @cached_property
    def ids(self) -> list[str]:
        """The ids of the n held-out texts."""
        table = read_table(self.files(paths.NLL, arm="gold")[0], schemas.NLL, ["id"])
        return list(table["id"].to_pylist())

    @cached_property
    def tokens(self) -> Floats:
        """How many tokens of each text are predicted (n,)."""
        table = read_table(self.files(paths.NLL, arm="gold")[0], schemas.NLL, ["tokens"])
        return np.asarray(table["tokens"].to_numpy(), dtype=np.float64)

    @cached_property
    def texts(self) -> Labelled:
        """Return the domains, labels and groups of the held-out texts."""
        first = self.files(paths.NLL, arm="gold")[0]
        examples = paths.under(self.root, paths.EXAMPLES, dataset=self.dataset)
        return read_labels(examples, self.ids, do=f"delete {first} and run again")

    def of(self, domain: str, *, deep: bool = False) -> TextSet:
        """Return the texts of a domain with a token to predict; with ``deep``, those whose NLL is
        known without word frequencies."""
        inside = self.raked if deep else self.tokens > 0
        return self.subset(np.flatnonzero(inside & (self.texts.forget == (domain == FORGET))))

    def subset(self, rows: NDArray[np.int64]) -> TextSet:
        """Return the texts at some places."""
        groups = self.texts.groups
        return TextSet(rows, self.tokens[rows], None if groups is None else groups[rows])

    @cached_property
    def raked(self) -> NDArray[np.bool_]:
        """Return the NLL of which texts is known without word frequencies (n,)."""
        return np.asarray(np.isfinite(self.nll("gold", deep=True).sum(axis=0)))

    def nll(self, arm: str, *, deep: bool = False) -> Floats:
        """Return the summed NLL of each text (S, n), in nats, under the models of an arm; with
        ``deep`` without word frequencies, NaN for texts that are not sampled for it."""
        every, column = np.arange(len(self.ids)), "deep" if deep else "nll"
        files = self.files(paths.NLL, arm=arm)
        return np.array(
            [self._sums(read_table(path, schemas.NLL), path, every, column) for path in files]
        )

    def relearned(self, arm: str) -> dict[int, Floats]:
        """Return by step the summed NLL of each text (S, n), in nats, NaN of all but forget texts,
        under the models of an arm that has relearned for so many steps."""
        rows = self.of(FORGET).rows
        by_step: dict[int, list[Floats]] = {}
        for path in self.files(paths.RELEARNED, arm=arm):
            table = read_table(path, schemas.RELEARNED_TEXTS)
            for step in pc.unique(table["step"]).to_pylist():
                at_step = table.filter(pc.equal(table["step"], step))
                by_step.setdefault(step, []).append(self._sums(at_step, path, rows))
        return {step: np.array(by_seed) for step, by_seed in by_step.items()}

    def _sums(
        self, table: pa.Table, path: Path, rows: NDArray[np.int64], column: str = "nll"
    ) -> Floats:
        """Return a ``column`` of summed NLL (nats) of the texts ``rows``, (n,), NaN where it is
        null and of others. Raises ``UserError`` for a table that lacks one of them."""
        places = pc.index_in(
            pa.array(self.ids).take(pa.array(rows)), value_set=table["id"].combine_chunks()
        )
        if places.null_count:
            raise UserError("lacks a text of the evaluation section", where=path, do="run again")
        tokens, nll = (table[name].take(places).to_numpy() for name in ("tokens", column))
        assert np.array_equal(tokens, self.tokens[rows]), f"{path} has texts of other lengths"
        sums = np.full(len(self.ids), np.nan)
        sums[rows] = nll
        return sums

    @cached_property
    def gold(self) -> Floats:
        """Return the summed NLL of each text (S, n), in nats, under the gold models."""
        return self.nll("gold")


def cohorts(grid: Mapping[str, Any], root: str | Path) -> Iterator[Cohort]:
    """Yield the cohort of each dataset and model of a grid."""
    for dataset, model in product(grid["datasets"], grid["models"]):
        yield Cohort(dataset, model, tuple(grid["seeds"]), root)
