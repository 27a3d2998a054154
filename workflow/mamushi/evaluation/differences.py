"""The table ``sad_differences``: which selectors' curves of SAD differ by more than seeds do.

Models of a seed share the order of the texts and the gold standard, so selectors are compared in
pairs, seed by seed. A family of comparisons is all pairs of selectors of a dataset and model, at
all measured budgets for SAD, once for the area. Holm's correction over all of them also covers
comparisons that are chosen by looking, as that with the best other selector is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import schemas
from mamushi.evaluation.paired import LEVEL, holm, interval, known, p_value, seeds_needed
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.summary import BASELINE, areas, curves_of, gold_distances

BEST = "best"
"""What stands in ``reference`` for the other selector, random aside, with the lowest mean."""

Values = Mapping[str, Floats]
"""Of each selector the value in each seed (seeds,)."""


def sad_differences(table: pa.Table) -> pa.Table:
    """Return the table ``sad_differences`` of a table ``sad``.

    A row per dataset, model and selector other than random, for each measured budget and the area
    (``beta`` is null), against random and against the best of the others. With one seed all numbers
    are null, since nothing is known of their error.
    """
    curves = curves_of(table)
    rows: list[dict[str, Any]] = []
    for dataset, model in dict.fromkeys(key[:2] for key in curves):
        own = {key[2]: seeds for key, seeds in curves.items() if key[:2] == (dataset, model)}
        first = next(iter(own.values()))
        gold = gold_distances(first)["gold_sad"]
        sad: dict[float | None, Values] = {
            point["beta"]: {
                name: np.array([seed[place]["sad"] for seed in seeds])
                for name, seeds in own.items()
            }
            for place, point in enumerate(first[0][1:-1], start=1)
        }
        area: dict[float | None, Values] = {
            None: {name: areas(seeds) for name, seeds in own.items()}
        }
        for quantity, family in (("sad", sad), ("area", area)):
            head = {"dataset": dataset, "model": model, "quantity": quantity}
            rows.extend({**head, **row} for row in _compare_family(family, gold))
    return pa.Table.from_pylist(rows, schema=schemas.SAD_DIFFERENCES.schema)


def _compare_family(
    points: Mapping[float | None, Values], gold: float | None
) -> Iterator[dict[str, Any]]:
    tested = {
        # The test is two-sided: it is the same whichever comes first.
        (beta, frozenset({one, other})): p_value(values[one] - values[other])
        for beta, values in points.items()
        for one, other in combinations(values, 2)
    }
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    comparisons = int(np.count_nonzero(~np.isnan(list(tested.values()))))
    for beta, values in points.items():
        for name in values:
            for reference, other in _references(name, values):
                pair = (beta, frozenset({name, other}))
                row: dict[str, Any] = {"selector": name, "beta": beta, "reference": reference}
                row |= {"other": other, "seeds": len(values[name])}
                if len(values[name]) > 1:
                    row |= _compare(values[name] - values[other], comparisons, gold)
                    row |= {"p": known(tested[pair]), "p_holm": known(corrected[pair])}
                yield row


def _references(name: str, values: Values) -> Iterator[tuple[str, str]]:
    if name == BASELINE:
        return
    if BASELINE in values:
        yield BASELINE, BASELINE
    others = [other for other in values if other not in (name, BASELINE)]
    if others:
        yield BEST, min(others, key=lambda other: float(values[other].mean()))


def _compare(differences: Floats, comparisons: int, gold: float | None) -> dict[str, Any]:
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    low, high = interval(differences)
    return {
        "difference": mean,
        "difference_low": low,
        "difference_high": high,
        "comparisons": comparisons,
        "gold_sad": gold,
        "seeds_for_difference": seeds_needed(mean, spread, comparisons),
        "seeds_for_gold_sad": None if gold is None else seeds_needed(gold, spread, comparisons),
    }


def verdict(differences: pa.Table) -> str:
    """Say which curves differ from that of random, in reStructuredText: an item per model.

    It is included in the report by the caption of the figure.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in differences.to_pylist():
        groups.setdefault((row["dataset"], row["model"]), []).append(row)
    items = [
        f"* ``{dataset}``, ``{model}``: {_verdict_of_model(rows)}"
        for (dataset, model), rows in groups.items()
    ]
    return "\n".join(items or ["* No two selectors were run, so nothing is compared."]) + "\n"


def _verdict_of_model(rows: Sequence[dict[str, Any]]) -> str:
    seeds = rows[0]["seeds"]
    if seeds == 1:
        return "one seed, whose error is unknown: nothing tells these curves apart."
    against = [row for row in rows if row["reference"] == BASELINE]
    if not against:
        return "``random`` was not run, so no curve is compared with it."
    significant = [row for row in against if row["p_holm"] is not None and row["p_holm"] <= LEVEL]
    parts = []
    for quantity, where in (("area", "in area"), ("sad", "at single budgets")):
        for sign, side in ((-1, "below"), (1, "above")):
            budgets: dict[str, list[str]] = {}
            for row in significant:
                if row["quantity"] == quantity and row["difference"] * sign > 0:
                    budget = "" if row["beta"] is None else f"{row['beta']:g}"
                    budgets.setdefault(row["selector"], []).append(budget)
            names = [
                f"``{name}``" + (f" ({', '.join(each)})" if each[0] else "")
                for name, each in budgets.items()
            ]
            if names:
                parts.append(f"{where} {', '.join(names)} {side} ``random``")
    if parts:
        return f"at {seeds} seeds {'; '.join(parts)}. No other difference from it can be told."
    return f"none of these curves can be told from that of ``random`` at {seeds} seeds."
