"""The table ``sad_differences``: which selectors differ in SAD, seed by seed.

A family of comparisons is all pairs of selectors of a dataset and model, at all measured budgets
for SAD, once for the area; Holm's correction over it also covers comparisons that are chosen by
looking, as that with the best other selector is.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.evaluation import sad_tables
from mamushi.evaluation.intervals import Floats, finite_or_none
from mamushi.evaluation.sad import BASELINE
from mamushi.evaluation.sad_tables import areas
from mamushi.io.columns import Table
from mamushi.io.schemas import SAD
from mamushi_extras.effects.contrasts import holm, interval, p_value
from mamushi_extras.effects.schemas import SAD_DIFFERENCES


def tables(root: Path, grid: Mapping[str, Any], ranked: Collection[str]) -> dict[Table, pa.Table]:
    """Return the tables of a grid as the core makes them, and which of its selectors differ."""
    made = sad_tables.tables(root, grid, ranked)
    return {**made, SAD_DIFFERENCES: sad_differences(made[SAD])}


def sad_differences(table: pa.Table) -> pa.Table:
    """Return the table ``sad_differences`` of a table ``sad``. A row per selector other than
    random, for each measured budget and the area (``beta`` is null), against random and against the
    best of the others. With one seed all numbers are null."""
    rows: list[dict[str, Any]] = []
    for model, of_model in table.to_pandas().groupby(["dataset", "model"], sort=False):
        measured = of_model[(of_model.beta > 0) & (of_model.beta < 1)]
        sads = {
            beta: {name: of.sad.to_numpy() for name, of in at.groupby("selector", sort=False)}
            for beta, at in measured.groupby("beta")
        }
        for quantity, family in (("sad", sads), ("area", {None: areas(of_model)})):
            head = {"dataset": model[0], "model": model[1], "quantity": quantity}
            rows += [head | row for row in _compare(family)]
    return pa.Table.from_pylist(rows, schema=SAD_DIFFERENCES.schema)


def _compare(family: Mapping[Any, Mapping[str, Floats]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a family, from the values (seeds,) of each selector at each budget."""
    # The test is two-sided: it is the same whichever comes first.
    tested = {
        (beta, frozenset(pair)): p_value(values[pair[0]] - values[pair[1]])
        for beta, values in family.items()
        for pair in combinations(values, 2)
    }
    corrected = dict(zip(tested, holm([*tested.values()]), strict=True))
    comparisons = int(np.isfinite([*tested.values()]).sum())
    for beta, values in family.items():
        names = [name for name in values if name != BASELINE]
        for name in names:
            references = {"random": BASELINE} if BASELINE in values else {}
            if rivals := [rival for rival in names if rival != name]:
                references["best"] = min(rivals, key=lambda rival: float(values[rival].mean()))
            for reference, rival in references.items():
                apart, pair = values[name] - values[rival], (beta, frozenset({name, rival}))
                row: dict[str, Any] = {"selector": name, "beta": beta, "seeds": len(apart)}
                row |= {"reference": reference, "other": rival}
                if len(apart) > 1:
                    row |= {"difference": float(apart.mean()), "comparisons": comparisons}
                    row["difference_low"], row["difference_high"] = interval(apart)
                    row["p"] = finite_or_none(tested[pair])
                    row["p_holm"] = finite_or_none(corrected[pair])
                yield row
