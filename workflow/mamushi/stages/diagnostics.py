"""Describe the scores of a run: spread, separation of the domains, calibration, folds.

Reads the scores of any number of selectors and writes a row for each. What a score has not, because
its selector has none for retain examples or uses no folds, is left empty.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("scores",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--scores", required=True, nargs="+", type=Path, help="scores tables")
    parser.add_argument(
        "--selectors", required=True, nargs="+", help="their selectors, in the same order"
    )
    parser.add_argument("--out", required=True, type=Path, help="the diagnostics table to write")
    parser.add_argument(
        "--settings", required=True, type=settings, help='{"dataset": .., "model": .., "seed": ..}'
    )


def run(args: argparse.Namespace) -> None:
    """Write ``diagnostics``. Raises ``UserError`` for a missing or damaged file, and unless every
    file has one selector of its own."""
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_table
    from mamushi.errors import UserError
    from mamushi.evidence.diagnostics import diagnose, read_scores

    names, files = args.selectors, args.scores
    if len(names) != len(files) or len(set(names)) < len(names):
        raise UserError(
            f"{len(files)} files of scores and the selectors {', '.join(names)}",
            where="--selectors",
            do="name each selector once, in the order of --scores",
        )
    this = {key: args.settings[key] for key in ("dataset", "model", "seed")}
    rows = [
        {**this, "selector": name, **diagnose(read_scores(path))}
        for name, path in zip(names, files, strict=True)
    ]
    inputs = {f"scores/{name}": path for name, path in zip(names, files, strict=True)}
    write_table(
        args.out,
        "diagnostics",
        {key: [row[key] for row in rows] for key in rows[0]},
        metadata={"provenance": provenance(args.settings, **inputs)},
    )
