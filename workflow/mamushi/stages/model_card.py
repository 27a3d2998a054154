"""Check a model from a folder or the hub, and write the card by which later stages find it."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The card's path, and the settings: the model's name and definition."""
    parser.add_argument("--out", type=Path, required=True, metavar="JSON")
    parser.add_argument("--settings", type=settings, required=True, metavar="JSON")


def run(args: argparse.Namespace) -> None:
    """Inspect the model and write its card; the files of a hub model come into the hub's cache."""
    import os

    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.provenance import provenance
    from mamushi.lm import loading

    given = args.settings
    card = loading.inspect(
        given["name"],
        given["source"],
        revision=given["revision"],
        trust_remote_code=given["trust_remote_code"],
        contaminated=given["contaminated"],
    )
    source = card["source"]
    if card["revision"] is None and not os.path.isabs(source):
        # As seen from the card, so that a project can be moved or copied.
        source = os.path.relpath(source, args.out.parent)
    write_json(args.out, {**card, "source": source, "provenance": provenance(given)})
