"""Write a report on what was made, one page that opens offline: tables, figures and how they came.

It is Snakemake's report on the configuration of the folder in which it is started. Of what a target
asks for, all must have been made: see `mamushi run`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.commands import _as_json
from mamushi_runs import hooks
from mamushi_runs.commands import _run

GROUP = "decide"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    help_text = "what to report on (default: all)"
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=help_text)
    out = "page to write (default: %(default)s)"
    default = Path("results/report.html")
    parser.add_argument("--out", type=Path, default=default, metavar="FILE", help=out)
    _run.configfile(parser)
    _as_json.argument(parser)
    _run.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status of Snakemake. Raises ``UserError`` as ``_run.required``."""
    configfiles = _run.required(args)
    status = _run.run(args.targets, configfiles, args, report=args.out)
    if status == 0 and not _run.is_dry(args):
        # It links the report.
        hooks.start_page(configfiles, _run.check(configfiles))
        print(args.out)
    _as_json.put({"report": None if status or _run.is_dry(args) else args.out})
    return status
