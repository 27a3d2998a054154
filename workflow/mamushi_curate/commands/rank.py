"""Rank a table of texts and list what to remove: `init`, the stages and `show` in one command.

One table and one model are ranked in this process; a grid, another profile, and a model that is to
be trained first, by Snakemake, in the same folder. Lists and page come first, and then how certain
they are. What was stopped goes on with the same command; without DATA, with the configuration that
is there.
"""

import argparse
import contextlib
import os
from collections.abc import Mapping
from typing import Any

from mamushi.commands import _as_json
from mamushi.config import grid
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.registry import tree
from mamushi.stages.tables import predicted_cells
from mamushi_cluster.commands import _run
from mamushi_curate.pipeline import fits_one_process, open_pipeline

QUICK = tree() / "profiles" / "default" / "quick.yaml"
"""What is laid over a configuration to do without refits."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `init`, and how to run."""
    from mamushi_curate.commands import init

    init.arguments(parser)
    quick = "lists and their page alone, without how certain they are"
    parser.add_argument("--quick", action="store_true", help=quick)
    _run.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status. Raises ``UserError`` as `init` does, and for options of a
    configuration that is there already."""
    from mamushi_curate.commands import init, show

    if args.data is not None or not args.out.is_file():
        init.write_configuration(args)
    elif options_in_use := [name for name in args.chosen if getattr(args, name) is not None]:
        do = "change it there, or give DATA as well, and --force to write over it"
        problem = f"is there already, and --{options_in_use[0]} says how to write it"
        raise UserError(problem, where=args.out, do=do)
    config = _run.check([args.out])
    pages = [paths.RANKING.format(**cell) for cell in grid.cells(config["grid"])]
    is_seen = all(map(os.path.isfile, pages))
    if is_here := fits_one_process(args, config):
        _rank_here(args, config, is_seen)
    elif (status := _rank_by_workflow(args, config)) or args.dry_run:
        _as_json.put([])
        return status
    is_shown = is_here and not (is_seen or args.quick)
    show.show(paths.RESULTS, texts=not is_shown, as_json=args.json)
    if args.quick and not args.json:
        print("\nmamushi rank goes on with how certain they are.\n")
    return 0


def _rank_here(args: argparse.Namespace, config: Mapping[str, Any], seen: bool) -> None:
    """Run the stages in this process: lists and page first, then how certain they are."""
    from mamushi_cluster import hooks
    from mamushi_curate.commands import show

    with open_pipeline(args, args.out, config) as pipeline:
        if args.quick or not (seen or config["evidence"]["refits"]["whole"] == 0):
            lists = pipeline(_run.check([args.out, QUICK]))
            lists.want_lists()
            lists.want(paths.RANKING)
            lists.make()
            if not args.quick and not args.json:
                show.show(paths.RESULTS)
                print("\nHow certain they are comes next.\n", flush=True)
        if not args.quick:
            ranking = pipeline(config)
            ranking.want_lists()
            ranking.want(paths.RANKING)
            ranking.want_advice()
            ranking.make()
            for name in ranking.of_texts if ranking.is_corpus else ():
                # None is likely, or all are: no list.
                with contextlib.suppress(UserError):
                    ranking.make_likely_list(name)
        hooks.print_start_page([args.out])


def _rank_by_workflow(args: argparse.Namespace, config: Mapping[str, Any]) -> int:
    """Let Snakemake make the same files. Return its exit status."""
    cells = [*grid.cells(config["grid"])]
    corpora = [cell for cell in cells if unlabelled(config["datasets"][cell["dataset"]])]
    labelled = [cell for cell in cells if cell not in corpora]
    patterns = [(paths.RANKING, cells)]
    if not args.quick:
        predicted = [cell for cell in predicted_cells(config) if cell in labelled]
        patterns += [(paths.FRONTIER, labelled), (paths.PREDICTED, predicted)]
    targets = ["removals", *(path.format(**cell) for path, several in patterns for cell in several)]
    return _run.run(targets, [args.out, QUICK] if args.quick else [args.out], args)
