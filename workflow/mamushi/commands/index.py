"""Make the start page of a results folder, index.html: links to all that is there, offline.

A run of the workflow makes it when it ends; by this command it is made again, for instance after
the report.
"""

from __future__ import annotations

import argparse
from pathlib import Path

GROUP = "decide"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "results folder (default: %(default)s)"
    parser.add_argument("--root", type=Path, default=Path("results"), help=about)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` where there is nothing to link."""
    from mamushi.errors import UserError
    from mamushi.evidence.start import write

    page = write(args.root)
    if page is None:
        raise UserError("no results to link", where=args.root, do="give a results folder")
    print(page)
