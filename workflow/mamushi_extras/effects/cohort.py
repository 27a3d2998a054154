"""The models of all seeds of a dataset and model, and their NLL of held-out texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.labels import TextProperties, read_texts
from mamushi.evaluation.intervals import Floats
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import FORGET, examples_file, read_table
from mamushi_extras.effects.contrasts import Effect, contrast

Rows = NDArray[np.int64]
"""Places (m,) of some of the held-out texts."""


@dataclass(frozen=True)
class Cohort:
    """A dataset and a model with several seeds, which share the n held-out texts of the first."""

    dataset: str
    model: str
    seeds: Sequence[int]
    root: Path

    @property
    def cell(self) -> dict[str, str]:
        """Return the values of the columns that name it in tables."""
        return {"dataset": self.dataset, "model": self.model}

    def files(self, pattern: str, **wildcards: str) -> list[Path]:
        """Return a path for each seed: the pattern with its seed and the other ``wildcards``."""
        wildcards |= self.cell
        return [paths.under(self.root, pattern, seed=s, **wildcards) for s in self.seeds]

    @cached_property
    def held_out(self) -> pa.Table:
        """The ``id`` and the number of predicted ``tokens`` of the held-out texts."""
        return read_table(self.files(paths.NLL, arm="gold")[0], schemas.NLL, ["id", "tokens"])

    @cached_property
    def texts(self) -> TextProperties:
        """The domains, labels and groups of the held-out texts."""
        examples = paths.under(self.root, paths.EXAMPLES, dataset=self.dataset)
        return read_texts(examples, self.held_out["id"])

    @cached_property
    def examples(self) -> list[Path]:
        """The texts of each seed, as its gold model has read them."""
        cards = zip(self.seeds, map(read_json, self.files(paths.CARD, arm="gold")), strict=True)
        digests = {seed: card["inputs"]["examples"] for seed, card in cards}
        return [examples_file(self.root, digests[s], seed=s, **self.cell) for s in self.seeds]

    def rows(self, *domains: str, deep: bool = False) -> Rows:
        """Return the texts of domains with a token to predict; with ``deep``, those whose NLL is
        known without word frequencies."""
        known = self.held_out["tokens"].to_numpy() > 0
        if deep:
            known &= np.isfinite(self.nll("gold", deep=True).sum(axis=0))
        return np.flatnonzero(known & np.isin(self.texts.forget, [of == FORGET for of in domains]))

    def nll(self, arm: str, *, deep: bool = False) -> Floats:
        """Return the summed NLL of each text (S, n), in nats, under the models of an arm; with
        ``deep`` without word frequencies, NaN for texts that are not sampled for it."""
        column, ids, values = "deep" if deep else "nll", self.held_out["id"], []
        for path in self.files(paths.NLL, arm=arm):
            table = read_table(path, schemas.NLL, ["id", column])
            values.append(table[column].take(pc.index_in(ids, table["id"])).to_numpy())
        return np.array(values)

    def is_listed(self, ids: Any, selector: str, beta: str) -> NDArray[np.bool_]:
        """Tell which of ``ids`` are in the removal list of each seed (S, len(ids))."""
        files = self.files(paths.REMOVAL, selector=selector, beta=beta)
        lists = [read_table(path, schemas.REMOVALS, ["id"])["id"] for path in files]
        return np.array([pc.is_in(ids, listed.combine_chunks()) for listed in lists])

    def at(self, rows: Rows) -> tuple[Floats, NDArray[np.int64] | None]:
        """Return the tokens of some texts, and the groups of those that are not independent."""
        tokens, groups = self.held_out["tokens"].to_numpy(), self.texts.groups
        return tokens[rows].astype(np.float64), None if groups is None else groups[rows]

    def contrast(
        self,
        rows: Rows,
        a: Floats,
        b: Floats,
        gap: tuple[Floats, Floats] | None = None,
        pooled: tuple[float, float] | None = None,
        net: bool = False,
    ) -> Effect:
        """Compare models a and b on some texts as ``contrasts.contrast``, from the NLL of all texts
        (S, n); as a share of the ``gap`` between beta 0 and gold, where it is given; on forget
        texts ``net`` of retain texts."""
        ends = gap and (gap[0][:, rows], gap[1][:, rows])
        options: dict[str, Any] = {"gap": ends, "pooled": pooled}
        options["forget"] = self.texts.forget[rows] if net else None
        return contrast(a[:, rows], b[:, rows], *self.at(rows), **options)

    def mean_nll(self, rows: Rows, nll: Floats, *, net: bool = False) -> Floats:
        """Return the mean NLL per token (...) of some texts, from that of all texts (..., n); of
        forget texts ``net`` of retain texts."""
        if net:
            forget = self.texts.forget[rows]
            return self.mean_nll(rows[forget], nll) - self.mean_nll(rows[~forget], nll)
        mean: Floats = nll[..., rows].sum(axis=-1) / max(self.at(rows)[0].sum(), 1.0)
        return mean


def cohorts(grid: Mapping[str, Any], root: Path) -> Iterator[Cohort]:
    """Yield the cohort of each dataset and model of a grid."""
    for dataset, model in product(grid["datasets"], grid["models"]):
        yield Cohort(dataset, model, tuple(grid["seeds"]), root)
