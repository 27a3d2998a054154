"""Draw one figure from the result tables, as PDF and PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--tables", required=True, type=Path, help="folder of the result tables")
    parser.add_argument("--out", required=True, type=Path, help="the PDF; a PNG goes beside it")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='{"name": file in figures/gallery, "figures": {style}, "grid": {...}}',
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for an unknown figure or a table without the grid's rows."""
    from mamushi.figures.style import Style, save, styled
    from mamushi.registry import load

    module = load("figure", args.settings["name"])
    style = Style(**args.settings["figures"])
    with styled(style):
        save(module.draw(args.tables, args.settings["grid"], style), args.out, style)
