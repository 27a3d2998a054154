"""Means and standard errors over seeds of the table ``sad``, and areas under its curves."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import schemas
from mamushi.artifacts.domains import DOMAINS
from mamushi.evaluation.paired import known
from mamushi.evaluation.sad import Floats, area, sad, standard_error

Curve = list[dict[str, Any]]
"""The rows of ``sad`` of one dataset, model, seed and selector, by increasing beta."""
MEASURED = ("ppl_forget", "ppl_retain", "sad", "log_sad")
BASELINE = "random"


def sad_summary(table: pa.Table) -> pa.Table:
    """Return the table ``sad_summary``: a row per dataset, model, selector and beta.

    Areas belong to a whole curve and repeat on its rows. ``area_vs_random`` compares with random
    removal at the same seeds, which share the endpoints; so its error is that of the paired
    differences. It is null where random was not run.

    SAD is a sum of absolute values: noise moves it up where it is near 0. The signed distances of
    each domain have no such bias.
    """
    curves = curves_of(table)
    rows = []
    for (dataset, model, selector), seeds in curves.items():
        whole_areas = areas(seeds)
        baseline = curves.get((dataset, model, BASELINE))
        whole = {
            **_mean("area", whole_areas),
            **_mean("area_measured", areas(seeds, ends=False)),
            **_versus(whole_areas, None if baseline is None else areas(baseline)),
        }
        for point in zip(*seeds, strict=True):
            row: dict[str, Any] = {"dataset": dataset, "model": model, "selector": selector}
            row |= {"beta": point[0]["beta"], "removed": point[0]["removed"], "seeds": len(seeds)}
            for name in MEASURED:
                row |= _mean(name, np.array([seed[name] for seed in point]))
            for domain in DOMAINS:
                signed = [seed[f"ppl_{domain}"] - seed[f"gold_ppl_{domain}"] for seed in point]
                row |= _mean(f"{domain}_distance", np.array(signed))
            rows.append(row | gold_distances(seeds) | whole)
    return pa.Table.from_pylist(rows, schema=schemas.SAD_SUMMARY.schema)


def gold_distances(curves: list[Curve]) -> dict[str, float | None]:
    """Return SAD between the gold standards of two seeds, and that of logs: means over pairs.

    They were trained on the same texts and differ in the seed alone: the noise floor. None with one
    seed. ``curves`` are those of one selector, whichever.
    """
    gold = [(curve[0]["gold_ppl_forget"], curve[0]["gold_ppl_retain"]) for curve in curves]
    if len(gold) == 1:
        return {"gold_sad": None, "gold_log_sad": None}
    pairs = np.array([(*one, *other) for one, other in combinations(gold, 2)]).T
    return {
        "gold_sad": float(sad(*pairs).mean()),
        "gold_log_sad": float(sad(*np.log(pairs)).mean()),
    }


def curves_of(table: pa.Table) -> dict[tuple[str, str, str], list[Curve]]:
    """Return the curves by dataset, model and selector, one per seed; in the table's order."""
    found: dict[tuple[str, str, str], dict[int, Curve]] = {}
    for row in table.to_pylist():
        seeds = found.setdefault((row["dataset"], row["model"], row["selector"]), {})
        seeds.setdefault(row["seed"], []).append(row)
    return {
        key: [sorted(curve, key=lambda row: float(row["beta"])) for curve in seeds.values()]
        for key, seeds in found.items()
    }


def areas(curves: list[Curve], *, ends: bool = True) -> Floats:
    """Return the area under every curve of SAD, with or without the ends beta 0 and beta 1."""
    parts = curves if ends else [curve[1:-1] for curve in curves]
    return np.array(
        [area([row["beta"] for row in part], [row["sad"] for row in part]) for part in parts]
    )


def _mean(name: str, values: Floats, mean: str = "_mean") -> dict[str, float | None]:
    return {f"{name}{mean}": float(values.mean()), f"{name}_se": known(standard_error(values))}


def _versus(areas: Floats, baseline: Floats | None) -> dict[str, float | None]:
    """Return the relative difference of the mean areas, with the error of paired differences."""
    if baseline is None or baseline.mean() == 0:
        return {"area_vs_random": None, "area_vs_random_se": None}
    return _mean("area_vs_random", (areas - baseline) / baseline.mean(), mean="")
