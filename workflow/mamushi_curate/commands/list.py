"""Make the list at a budget of one's own: of each selector's ranking so many texts, with copies.

What was ranked is not ranked again. Only budgets of the configuration have a manifest beside the
list.
"""

import argparse
import itertools
from collections.abc import Mapping
from typing import Any

from mamushi.commands import _as_json
from mamushi.config import grid
from mamushi.config.selectors import ranked
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi_cluster.commands import _run
from mamushi_curate.pipeline import fits_one_process, likely_budget, open_pipeline


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    budget = parser.add_mutually_exclusive_group(required=True)
    share = "share of the forget texts, above 0 and below 1, in steps of 0.000001"
    budget.add_argument("--budget", type=float, metavar="SHARE", help=share)
    budget.add_argument("--texts", type=int, metavar="NUMBER", help="number of forget texts")
    likely = "all that is more likely than not of the domain, of a corpus that nobody labelled"
    budget.add_argument("--likely", action="store_true", help=likely)
    selector = "by whose rankings (default: those of the configuration)"
    parser.add_argument("--selector", nargs="+", metavar="NAME", help=selector)
    _run.configfile(parser)
    _run.arguments(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status. Raises ``UserError`` for a budget that is none, and for a selector of
    tokens."""
    configfiles = _run.required(args)
    changes = {"grid": {"selectors": args.selector}} if args.selector else {}
    config = _run.check(configfiles, changes)
    tokens = ranked(config, tokens=True)
    if tokens and args.selector:
        raise UserError(f"{tokens[0]} ranks tokens and lists no text", where="--selector")
    lists = [
        {**cell, "selector": name, "beta": _beta(args, cell, name)}
        for cell, name in itertools.product(grid.cells(config["grid"]), config["grid"]["selectors"])
        if name not in tokens
    ]
    made = [paths.REMOVAL.format(**of) for of in lists]
    # Of a corpus, every list can have its manifest.
    corpora = [of for of in lists if unlabelled(config["datasets"][of["dataset"]])]
    wanted = [(paths.REMOVAL, of) for of in lists] + [(paths.MANIFEST, of) for of in corpora]
    status = 0
    if fits_one_process(args, config):
        with open_pipeline(args, configfiles[-1], config) as pipeline:
            ranking = pipeline(config)
            for pattern, of in wanted:
                ranking.want(pattern, selector=of["selector"], beta=of["beta"])
            ranking.make()
    else:
        status = _run.run([pattern.format(**of) for pattern, of in wanted], configfiles, args)
    if status == 0 and not args.dry_run:
        _as_json.put(made)
        print(*made, sep="\n")
    return status


def _beta(args: argparse.Namespace, cell: Mapping[str, Any], selector: str) -> str:
    """Return the budget as it stands in file names."""
    from mamushi.io.domains import FORGET, INFERENCE
    from mamushi.io.files import read_json
    from mamushi.selection.removals import share_of

    if args.likely:
        return likely_budget(cell, selector)
    if args.texts is not None:
        counts = read_json(paths.DATA_CARD.format(**cell))["counts"]
        return share_of(args.texts, counts.get("corpus", counts["sections"][INFERENCE][FORGET]))
    if not 0 < args.budget < 1:
        raise UserError(f"{args.budget!r} is no share above 0 and below 1", where="--budget")
    return paths.beta(args.budget)
