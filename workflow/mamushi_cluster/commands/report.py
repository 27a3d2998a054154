"""Write a report on what was made, one page that opens offline: tables, figures and how they came.

It is Snakemake's report on the configuration of the folder in which it is started. Of what a target
asks for, all must have been made: see `mamushi run`.
"""

import argparse
import shlex
from pathlib import Path

from mamushi.commands import _as_json
from mamushi_cluster import hooks
from mamushi_cluster.commands import _run


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    _run.of_targets(parser, "what to report on")
    out, default = "page to write (default: %(default)s)", Path("results/report.html")
    parser.add_argument("--out", type=Path, default=default, metavar="FILE", help=out)


def run(args: argparse.Namespace) -> int:
    """Return the exit status of Snakemake. Raises ``UserError`` as ``_run.required``."""
    configfiles = _run.required(args)
    args.snakemake_args += f" --report {shlex.quote(str(args.out))}"
    status = _run.run(args.targets, configfiles, args)
    is_made = status == 0 and not args.dry_run
    if is_made:
        # It links the report.
        hooks.print_start_page(configfiles)
        print(args.out)
    _as_json.put({"report": args.out if is_made else None})
    return status
