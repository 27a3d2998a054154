"""What a finished run says of the paper's claims: confirmed, contradicted, or not to be told.

A claim is a comparison of two selectors at the same seeds. It is confirmed or contradicted where
the t test of the paired differences says so at 5%, corrected for the number of claims that were
tried on that dataset and model (Holm); all else is not distinguishable at so many seeds, which is
all that can be said for a claim that two are alike. And whether the budgets that were advised held
what retraining measured. Reads the tables of a run that has trained what is compared, ``half_gap``
and ``advice`` where they are there:

    python benchmarks/claims.py results/tables
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.evaluation.paired import LEVEL, holm, interval, p_value
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.summary import areas, curves_of
from report import Report

BELOW, ABOVE, LIKE = "below", "above", "like"
SIGN = {BELOW: -1.0, ABOVE: 1.0}
CLAIMS = {
    "sad_area": (
        ("mamushi", BELOW, "lr_cos"),
        ("lr_cos", BELOW, "random"),
        ("mamushi", BELOW, "random"),
        ("lr_maha", LIKE, "lr_cos"),
        ("anti_mamushi", ABOVE, "random"),
        ("mamushi", BELOW, "mamushi_lr"),
    ),
    "auc": (("mamushi", ABOVE, "lr_cos"), ("mamushi", ABOVE, "mamushi_lr")),
}
"""By what is compared: one selector, where the paper finds it, and another."""

Cell = tuple[str, str]
Values = Mapping[str, Floats]


def measured(tables: Path) -> dict[str, dict[Cell, dict[str, Floats]]]:
    """By quantity, dataset and model, and selector: the values (seeds,), in the order of seeds."""
    sad = read_table(tables / "sad.parquet", schemas.SAD)
    found: dict[str, dict[Cell, dict[str, Floats]]] = {"sad_area": {}, "auc": {}}
    for (dataset, model, selector), curves in curves_of(sad.sort_by("seed")).items():
        found["sad_area"].setdefault((dataset, model), {})[selector] = areas(curves)
    selection = read_table(tables / "selection.parquet", schemas.SELECTION).sort_by("seed")
    rows = [row for row in selection.to_pylist() if row["auc"] is not None]
    for row in rows:
        of = found["auc"].setdefault((row["dataset"], row["model"]), {})
        of[row["selector"]] = np.append(of.get(row["selector"], []), row["auc"])
    return found


def tried(by_quantity: Mapping[str, Mapping[Cell, Values]], cell: Cell) -> Iterator[list[str]]:
    """Per claim that a run can try: its words, the difference, its interval, p and the verdict."""
    known = [
        (quantity, one, sign, other, values[one] - values[other])
        for quantity, claims in CLAIMS.items()
        if (values := by_quantity[quantity].get(cell, {}))
        for one, sign, other in claims
        if one in values and other in values
    ]
    for (quantity, one, sign, other, differences), p in zip(
        known, holm([p_value(each[-1]) for each in known]), strict=True
    ):
        mean, (low, high) = float(differences.mean()), interval(differences)
        said = "not distinguishable"
        if p <= LEVEL:
            said = "confirmed" if mean * SIGN.get(sign, 0.0) > 0 else "contradicted"
        yield [
            f"{quantity}:{one}_{sign}_{other}",
            f"{mean:.4g} [{low:.4g}, {high:.4g}] p_holm {p:.3g} seeds {len(differences)}: {said}",
        ]


def halved(table: pa.Table) -> Iterator[list[str]]:
    """What a selector saves of random's half-gap budget, with its interval over seeds."""
    for row in table.to_pylist():
        low, high = row["saving_vs_random_low"], row["saving_vs_random_high"]
        if row["selector"] == "random" or row["saving_vs_random"] is None:
            continue
        said = "not distinguishable"
        if low is not None and (low > 0 or high < 0):
            said = "confirmed" if low > 0 else "contradicted"
        cell = f"{row['dataset']}/{row['model']}/half_gap"
        yield [
            f"{cell}:{row['unlearner']}_{row['selector']}_{BELOW}_random",
            f"saves {row['saving_vs_random']:.4g} [{low}, {high}] seeds {row['seeds']}: {said}",
        ]


def advised(table: pa.Table) -> Iterator[list[str]]:
    """Measured budgets beside the span for retraining, and the interval of a learner without
    limits."""
    for row in table.to_pylist():
        if row["measured"] is None or row["retraining_low"] is None:
            continue
        said = []
        for name, end in (("retraining", "retraining"), ("limit", "budget")):
            low, high = row[f"{end}_low"], row[f"{end}_high"]
            held = "holds" if low <= row["measured"] <= high else "misses"
            said.append(f"{name} [{low:.2f}, {high:.2f}] {held}")
        cell = f"{row['dataset']}/{row['model']}/advice"
        yield [
            f"{cell}:{row['selector']}_{row['target']}_{row['value']:g}",
            f"measured {row['measured']:.3f} {' '.join(said)}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+", help="the folders of tables of runs")
    args = parser.parse_args()
    report = Report("claims")
    for folder in args.tables:
        by_quantity = measured(folder)
        for cell in by_quantity["sad_area"]:
            for quantity, of in by_quantity.items():
                for selector, values in of.get(cell, {}).items():
                    shown = " ".join(f"{value:.4g}" for value in values)
                    report.value(f"{cell[0]}/{cell[1]}/{quantity}:{selector}", shown)
            for name, said in tried(by_quantity, cell):
                report.value(f"{cell[0]}/{cell[1]}/{name}", said)
        for schema, told in ((schemas.HALF_GAP, halved), (schemas.ADVICE, advised)):
            if (path := folder / f"{schema.name}.parquet").is_file():
                for name, said in told(read_table(path, schema)):
                    report.value(name, said)
    report.write()


if __name__ == "__main__":
    main()
