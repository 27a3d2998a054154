"""Collect what all models said and how they relearned in two result tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out_folder",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument(
        "--root", type=Path, default=Path("results"), help="results folder (default: %(default)s)"
    )
    parser.add_argument("--out-folder", required=True, type=Path, help="where to write the tables")
    parser.add_argument(
        "--settings", required=True, type=settings, help='{"grid": ..., "starts": by model}'
    )


def run(args: argparse.Namespace) -> None:
    """Write ``generations`` and ``relearning``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_csv, write_table
    from mamushi.evaluation.probes import all_generations, relearning_table

    grid = args.settings["grid"]
    tables = {
        "generations": all_generations(grid, args.root),
        "relearning": relearning_table(grid, args.settings["starts"], args.root),
    }
    made_from = provenance(args.settings)
    for name, table in tables.items():
        write_table(args.out_folder / f"{name}.parquet", name, table, metadata=made_from)
        write_csv(args.out_folder / f"{name}.csv", table)
