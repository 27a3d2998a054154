"""Derive a removal list again from what its manifest names, and say what differs.

Runs the selector on the embeddings with the settings and the seed of the manifest, and compares
scores, ranking, list, copies and expected values; so it does for the scores that the selector
derives from, and for those that the expected values rest on. The first difference is named, in the
order in which things are made; the exit code is 0 for a list that is what its manifest says, and 2
else.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage, for people."""
    parser.add_argument("manifest", type=Path, help="the .json beside a removal list")
    parser.add_argument(
        "--root",
        type=Path,
        help="results folder with the run that the manifest names (default: the one it lies in)",
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` that names the first difference."""
    from mamushi.evidence.verification import verify

    remarks = verify(args.manifest, args.root)
    for remark in remarks:
        print(f"note: {remark}")
    print(f"{args.manifest}: the list is what its manifest says")
