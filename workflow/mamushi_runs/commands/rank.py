"""Rank a table of texts and list what to remove: `init`, the workflow and `show` in one command.

It writes the configuration and works in the folder in which it is started: an ordinary folder of
the workflow, in which Snakemake can be used as well. What was stopped goes on with the same
command; without DATA, with the configuration that is there.
"""

from __future__ import annotations

import argparse

from mamushi_runs import workflow

GROUP = "start"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `init`, and how to run."""
    from mamushi.commands import init

    init.arguments(parser)
    workflow.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status: of the workflow where that failed. Raises ``UserError`` as `init`
    does."""
    from mamushi.artifacts import paths
    from mamushi.commands import init, show

    if args.data is not None or not args.out.is_file():
        init.run(args)
    cells = workflow.cells(workflow.grid(args.out))
    # The lists, and what is told of them: the rest of the evidence takes longer.
    figure = paths.CELL_FIGURE.replace("{figure}", show.FIGURE)
    evidence = (paths.FRONTIER, paths.RANKING, paths.TRIAGE_CSV, figure)
    wanted = ["removals", *(pattern.format(**cell) for cell in cells for pattern in evidence)]
    status = workflow.run(wanted, [args.out], args)
    told = status or "--dry-run" in args.snakemake_args.split()
    return status if told else show.show(paths.RESULTS)
