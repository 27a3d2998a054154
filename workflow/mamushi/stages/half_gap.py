"""Collect the budget-perplexity curves of unlearning and retraining, and their half-gap budgets."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out_folder",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage. Its inputs are a file per seed and budget, found by path."""
    parser.add_argument(
        "--root", type=Path, default=Path("results"), help="results folder (default: %(default)s)"
    )
    parser.add_argument("--out-folder", required=True, type=Path, help="where to write the tables")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='JSON: "grid", "starts" by model, "target", "retain_cap", "resamples"',
    )


def run(args: argparse.Namespace) -> None:
    """Write ``unlearning`` and ``half_gap``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_csv, write_table
    from mamushi.evaluation.half_gap import half_gap_table, unlearning_table

    chosen = args.settings
    points = unlearning_table(chosen["grid"], chosen["starts"], args.root)
    budgets = half_gap_table(
        points,
        target=chosen["target"],
        retain_cap=chosen["retain_cap"],
        resamples=chosen["resamples"],
    )
    made_from = provenance(chosen)
    for name, table in {"unlearning": points, "half_gap": budgets}.items():
        write_table(args.out_folder / f"{name}.parquet", name, table, metadata=made_from)
        write_csv(args.out_folder / f"{name}.csv", table)
