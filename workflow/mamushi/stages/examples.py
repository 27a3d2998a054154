"""Raw files of a dataset -> its examples table, the duplicates that were dropped, and its card.

Loads the rows, drops empty texts, duplicates and cross-posts, and divides what remains into the
sections. Nothing is written unless all of it succeeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out", "duplicates", "card")
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help="JSON object: dataset (its name), kind (of loader), loader (the loader's settings), "
        "sections (shares), limit (texts of each domain in a section), data (the settings 'data')",
    )
    parser.add_argument("--out", type=Path, required=True, help="examples.parquet to write")
    parser.add_argument(
        "--duplicates", type=Path, required=True, help="duplicates.parquet to write"
    )
    parser.add_argument("--card", type=Path, required=True, help="card.json to write")
    parser.add_argument("--cache", type=Path, required=True, help="folder for downloads")


def run(args: argparse.Namespace) -> None:
    """Make the examples. Raises ``UserError``, with the dataset's name, for bad input."""
    from mamushi.artifacts.files import sha256, write_json
    from mamushi.artifacts.tables import write_table
    from mamushi.data.examples import build, card, summary
    from mamushi.errors import UserError
    from mamushi.registry import load

    given = args.settings
    try:
        raw = load("dataset", given["kind"]).load(given["loader"], args.cache)
        table, duplicates, counts = build(raw, given["sections"], given["limit"], given["data"])
    except UserError as error:
        raise UserError(str(error), where=f"dataset {given['dataset']}") from None
    for line in summary(counts):
        print(f"{given['dataset']}: {line}", file=sys.stderr)
    write_table(args.out, "examples", table)
    # So that a removal list can tell that it joins what belongs together.
    of = {"examples": sha256(args.out)}
    write_table(args.duplicates, "duplicates", duplicates, metadata=of)
    write_json(args.card, card(given, raw, counts))
