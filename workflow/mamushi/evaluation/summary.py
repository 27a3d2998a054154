"""Means over seeds of the table ``sad``, areas under its curves, and which curves differ.

Selectors are compared seed by seed. A family of comparisons is all pairs of selectors of a dataset
and model, at all measured budgets for SAD, once for the area; Holm's correction over it also covers
comparisons that are chosen by looking, as that with the best other selector is.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.evaluation.paired import LEVEL, finite_or_none, holm, interval, p_value
from mamushi.evaluation.sad import Floats, area, sad, standard_error
from mamushi.io import schemas
from mamushi.io.domains import DOMAINS

Curve = list[Mapping[str, Any]]  # Rows of one seed and selector, by increasing beta.
Values = Mapping[str, Floats]  # Of each selector the value in each seed (seeds,).
_MEASURED = ("ppl_forget", "ppl_retain", "sad", "log_sad")
BASELINE = "random"
BEST = "best"  # The other selector, random aside, with the lowest mean.


def sad_summary(table: pa.Table) -> pa.Table:
    """Return the table ``sad_summary``: a row per dataset, model, selector and beta.

    Areas belong to a whole curve and repeat on its rows. ``area_vs_random`` is paired by seed, and
    null where random was not run. SAD is a sum of absolute values, which noise moves up near 0; the
    signed distances of each domain have no such bias, and tell a worse retain domain from a better.
    """
    curves = curves_of(table.to_pylist())
    rows = []
    for (dataset, model, selector), seeds in curves.items():
        of_curves, baseline = areas(seeds), curves.get((dataset, model, BASELINE))
        of_curve = {"gold_sad": gold_sad(seeds), "seeds": len(seeds), **_mean("area", of_curves)}
        if baseline is not None and (chance := areas(baseline)).mean() != 0:
            # With the error of paired differences.
            relative = (of_curves - chance) / chance.mean()
            of_curve |= _mean("area_vs_random", relative, mean="")
        for point in zip(*seeds, strict=True):
            row: dict[str, Any] = {"dataset": dataset, "model": model, "selector": selector}
            row |= {"beta": point[0]["beta"], "removed": point[0]["removed"], **of_curve}
            for name in _MEASURED:
                row |= _mean(name, np.array([seed[name] for seed in point]))
            for domain in DOMAINS:
                signed = [seed[f"ppl_{domain}"] - seed[f"gold_ppl_{domain}"] for seed in point]
                row |= _mean(f"{domain}_distance", np.array(signed))
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.SAD_SUMMARY.schema)


def gold_sad(curves: list[Curve]) -> float | None:
    """Return the mean SAD between the gold standards of two seeds; None with one seed.

    It is how far a model is from gold by its seed alone. It bounds no paired difference, in which
    common seeds cancel. ``curves`` (one a seed) are those of any one selector.
    """
    gold = [(curve[0]["gold_ppl_forget"], curve[0]["gold_ppl_retain"]) for curve in curves]
    pairs = np.array([(*first, *second) for first, second in combinations(gold, 2)]).T
    return float(sad(*pairs).mean()) if len(gold) > 1 else None


def curves_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[Curve]]:
    """Return the curves by dataset, model and selector, one per seed; in the order of the rows."""
    curves: dict[tuple[str, str, str], dict[int, Curve]] = {}
    for row in rows:
        seeds = curves.setdefault((row["dataset"], row["model"], row["selector"]), {})
        seeds.setdefault(row["seed"], []).append(row)
    return {
        key: [sorted(curve, key=lambda row: float(row["beta"])) for curve in seeds.values()]
        for key, seeds in curves.items()
    }


def areas(curves: list[Curve]) -> Floats:
    """Return the area under every curve of SAD, from beta 0 to beta 1."""
    return np.array(
        [area([row["beta"] for row in curve], [row["sad"] for row in curve]) for curve in curves]
    )


def _mean(name: str, values: Floats, mean: str = "_mean") -> dict[str, float | None]:
    error = finite_or_none(standard_error(values))
    return {f"{name}{mean}": float(values.mean()), f"{name}_se": error}


def sad_differences(table: pa.Table) -> pa.Table:
    """Return the table ``sad_differences`` of a table ``sad``.

    A row per selector other than random, for each measured budget and the area (``beta`` is null),
    against random and against the best of the others. With one seed all numbers are null.
    """
    models: dict[tuple[str, str], dict[str, list[Curve]]] = {}
    for (dataset, model, selector), seeds in curves_of(table.to_pylist()).items():
        models.setdefault((dataset, model), {})[selector] = seeds
    rows: list[dict[str, Any]] = []
    for (dataset, model), selectors in models.items():
        by_budget: dict[float | None, Values] = {}
        for place, point in enumerate(next(iter(selectors.values()))[0][1:-1], start=1):
            by_budget[point["beta"]] = {
                name: np.array([seed[place]["sad"] for seed in seeds])
                for name, seeds in selectors.items()
            }
        by_area: dict[float | None, Values] = {
            None: {name: areas(seeds) for name, seeds in selectors.items()}
        }
        for quantity, family in (("sad", by_budget), ("area", by_area)):
            head = {"dataset": dataset, "model": model, "quantity": quantity}
            rows.extend({**head, **row} for row in _compare_family(family))
    return pa.Table.from_pylist(rows, schema=schemas.SAD_DIFFERENCES.schema)


def _compare_family(points: Mapping[float | None, Values]) -> Iterator[dict[str, Any]]:
    # The test is two-sided: it is the same whichever comes first.
    tested = {
        (beta, frozenset(pair)): p_value(values[pair[0]] - values[pair[1]])
        for beta, values in points.items()
        for pair in combinations(values, 2)
    }
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    comparisons = int(np.count_nonzero(~np.isnan(list(tested.values()))))
    for beta, values in points.items():
        for name in values:
            for reference, rival in _references(name, values):
                apart, pair = values[name] - values[rival], (beta, frozenset({name, rival}))
                row: dict[str, Any] = {"selector": name, "beta": beta, "reference": reference}
                row |= {"other": rival, "seeds": len(apart)}
                if len(apart) > 1:
                    row |= {"difference": float(apart.mean()), "comparisons": comparisons}
                    row["difference_low"], row["difference_high"] = interval(apart)
                    row["p"] = finite_or_none(tested[pair])
                    row["p_holm"] = finite_or_none(corrected[pair])
                yield row


def _references(name: str, values: Values) -> Iterator[tuple[str, str]]:
    if name == BASELINE:
        return
    if BASELINE in values:
        yield BASELINE, BASELINE
    rivals = [rival for rival in values if rival not in (name, BASELINE)]
    if rivals:
        yield BEST, min(rivals, key=lambda rival: float(values[rival].mean()))


def verdict_on_curves(differences: pa.Table) -> str:
    """Say which curves differ from that of random, in reStructuredText, for the report."""
    models: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in differences.to_pylist():
        models.setdefault((row["dataset"], row["model"]), []).append(row)
    items = [f"* ``{name[0]}``, ``{name[1]}``: {_verdict(rows)}" for name, rows in models.items()]
    return "\n".join(items or ["* No two selectors were run, so nothing is compared."]) + "\n"


def _verdict(rows: list[dict[str, Any]]) -> str:
    against = [row for row in rows if row["reference"] == BASELINE]
    if (seeds := rows[0]["seeds"]) == 1 or not against:
        reason = "one seed, whose error is unknown" if seeds == 1 else "``random`` was not run"
        return f"{reason}: no curve is compared with that of ``random``."
    places: dict[str, list[str]] = {}
    for row in against:
        if row["p_holm"] is not None and row["p_holm"] <= LEVEL:
            side = "below" if row["difference"] < 0 else "above"
            place = "in area" if row["beta"] is None else f"at {row['beta']:g}"
            places.setdefault(f"``{row['selector']}`` {side} ``random``", []).append(place)
    if not places:
        return f"none of these curves can be told from that of ``random`` at {seeds} seeds."
    told = "; ".join(f"{name} {', '.join(where)}" for name, where in places.items())
    return f"at {seeds} seeds {told}. No other difference from it can be told."
