"""Make the list at a budget of one's own: of each selector's ranking so many texts, with copies.

The budget is a share of the ranked forget texts (--budget 0.125) or a number of them (--texts 500).
What was ranked is not ranked again. Only budgets of the configuration have a manifest beside the
list.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi_runs import workflow

GROUP = "decide"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    budget = parser.add_mutually_exclusive_group(required=True)
    share = "share of the forget texts, above 0 and below 1, in steps of 0.000001"
    budget.add_argument("--budget", metavar="SHARE", help=share)
    budget.add_argument("--texts", type=int, metavar="NUMBER", help="number of forget texts")
    selector = "by whose rankings (default: those of the configuration)"
    parser.add_argument("--selector", nargs="+", metavar="NAME", help=selector)
    workflow.configfile(parser)
    workflow.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status of the workflow. Raises ``UserError`` for a budget that is none, and
    as ``workflow.required``."""
    from mamushi.artifacts import paths
    from mamushi.errors import UserError, suggestion
    from mamushi.registry import plugins

    configfiles = workflow.required(args)
    grid = workflow.grid(*configfiles)
    selectors = args.selector or grid.get("selectors") or ["mamushi"]
    found = plugins("selector")
    own: dict[str, Any] = {}
    for path in configfiles:
        own |= workflow.read(path).get("selectors") or {}
    known = {*found, *own}
    if unknown := [name for name in selectors if name not in known]:
        what = f"unknown selector {unknown[0]!r}{suggestion(unknown[0], known)}"
        raise UserError(what, where="--selector", do=f"known are: {', '.join(sorted(known))}")
    kinds = {name: (own.get(name) or {}).get("kind", name) for name in selectors}
    ranking = {name for name, each in found.items() if "UNIT" in each.literals}
    tokens = [name for name in selectors if kinds[name] in ranking]
    if tokens and args.selector:
        what, do = f"{tokens[0]} ranks tokens and lists no text", "name a selector of texts"
        raise UserError(what, where="--selector", do=do)
    selectors = [name for name in selectors if name not in tokens]
    wanted = [
        paths.REMOVAL.format(**cell, selector=selector, beta=_beta(args, cell))
        for cell, selector in itertools.product(workflow.cells(grid), selectors)
    ]
    status = workflow.run(wanted, configfiles, args)
    if status == 0 and not workflow.is_dry(args):
        print("\n".join(wanted))
    return status


def _beta(args: argparse.Namespace, cell: Mapping[str, Any]) -> str:
    """Return the budget as it stands in file names."""
    from mamushi.artifacts import paths
    from mamushi.artifacts.domains import FORGET, INFERENCE
    from mamushi.artifacts.files import read_json
    from mamushi.errors import UserError
    from mamushi.selection.removals import share_of

    if args.texts is not None:
        path = Path(paths.DATA_CARD.format(dataset=cell["dataset"]))
        if not path.is_file():
            do = "rank first, with mamushi rank: it counts the texts"
            raise UserError("nothing is ranked here", where=path, do=do)
        card = read_json(path)
        return share_of(args.texts, card["counts"]["sections"][INFERENCE][FORGET])
    try:
        if 0 < float(args.budget) < 1:
            return paths.beta(args.budget)
    except ValueError:
        pass
    do = "give a share above 0 and below 1, such as 0.125"
    raise UserError(f"{args.budget!r} is no budget", where="--budget", do=do)
