"""Collect a grid's measurements in the result tables: SAD, its summary, quality of the scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out_folder",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage. Its inputs are thousands of files, so they are found by path."""
    parser.add_argument(
        "--root", type=Path, default=Path("results"), help="results folder (default: %(default)s)"
    )
    parser.add_argument("--out-folder", required=True, type=Path, help="where to write the tables")
    parser.add_argument(
        "--settings", required=True, type=settings, help='{"grid": datasets, models, seeds, ...}'
    )


def run(args: argparse.Namespace) -> None:
    """Write ``sad``, ``sad_summary`` and ``selection``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_csv, write_table
    from mamushi.evaluation.curves import sad_table
    from mamushi.evaluation.quality import selection_table
    from mamushi.evaluation.summary import sad_summary

    grid = args.settings["grid"]
    sad = sad_table(grid, args.root)
    tables = {
        "sad": sad,
        "sad_summary": sad_summary(sad),
        "selection": selection_table(grid, args.root),
    }
    # The digests of thousands of inputs would say no more than the settings, which name them all.
    made_from = provenance(args.settings)
    for name, table in tables.items():
        write_table(args.out_folder / f"{name}.parquet", name, table, metadata=made_from)
        write_csv(args.out_folder / f"{name}.csv", table)
