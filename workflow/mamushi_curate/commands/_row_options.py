"""Options that say which rows of a table are the listed ones.

Nothing heavy is imported: every help comes here.
"""

from __future__ import annotations

import argparse


def dialect(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add the options that say how cells stand in CSV and TSV, and return them."""
    quote = 'whether `"` holds cells of CSV and TSV together (default: as ranked, else double)'
    separator = "what divides them (default: as ranked, else as the first rows of a .csv say)"
    return [
        parser.add_argument("--quote", choices=("double", "none"), help=quote),
        parser.add_argument("--separator", choices=(",", ";", "|", "tab"), help=separator),
    ]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which rows of a table are the listed ones."""
    column = "column with the ids (default: the ranked dataset's; of a list of your own `id`)"
    names = parser.add_mutually_exclusive_group()
    names.add_argument("--id", metavar="COLUMN", help=column)
    rows = "the ids are numbers of rows, from 1, in the order of the files"
    names.add_argument("--rows", action="store_true", help=rows)
    text = "column with the texts, which are compared with those that were ranked (default: as "
    parser.add_argument("--text", metavar="COLUMN", help=text + "ranked)")
    dialect(parser)
    changed = "go by the ids also where the texts are others now, or cannot be compared"
    parser.add_argument("--changed-texts", action="store_true", help=changed)
    missing = "go on where the table lacks some of the listed ids"
    parser.add_argument("--missing-ids", action="store_true", help=missing)
