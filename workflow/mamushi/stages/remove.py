"""List the examples to remove at one budget: the top of a ranking, with all their copies."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("scores", "duplicates")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", type=Path, required=True, help="scores to rank by")
    parser.add_argument(
        "--duplicates", type=Path, required=True, help="the dataset's duplicates table"
    )
    parser.add_argument("--out", type=Path, required=True, help="the removals table to write")
    parser.add_argument("--settings", type=settings, required=True, help='{"beta"}')


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import read_metadata, read_table, write_table
    from mamushi.errors import UserError
    from mamushi.selection.removals import budget_of, removals

    scores = read_table(args.scores, "scores")
    duplicates = read_table(args.duplicates, "duplicates")
    examples = read_metadata(args.scores)["provenance"]["inputs"]["examples"]
    if read_metadata(args.duplicates)["examples"] != examples:
        raise UserError(
            f"was made with other examples than {args.scores}",
            where=args.duplicates,
            do="make the examples and the scores again",
        )
    table = removals(scores, duplicates, budget_of(args.settings["beta"], scores))
    origin = provenance(args.settings, scores=args.scores, duplicates=args.duplicates)
    write_table(args.out, "removals", table, metadata={"provenance": origin})
