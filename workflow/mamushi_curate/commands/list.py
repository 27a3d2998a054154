"""Make the list at a budget of one's own: of each selector's ranking so many texts, with copies.

The budget is a share of the ranked forget texts (--budget 0.125) or a number of them (--texts 500).
What was ranked is not ranked again. Only budgets of the configuration have a manifest beside the
list.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.config import grid
from mamushi.config.selectors import token_rankings
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi_curate import one_process
from mamushi_runs.commands import _run


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    budget = parser.add_mutually_exclusive_group(required=True)
    share = "share of the forget texts, above 0 and below 1, in steps of 0.000001"
    budget.add_argument("--budget", metavar="SHARE", help=share)
    budget.add_argument("--texts", type=int, metavar="NUMBER", help="number of forget texts")
    likely = "all that is more likely than not of the domain, of a corpus that nobody labelled"
    budget.add_argument("--likely", action="store_true", help=likely)
    selector = "by whose rankings (default: those of the configuration)"
    parser.add_argument("--selector", nargs="+", metavar="NAME", help=selector)
    _run.configfile(parser)
    _run.arguments(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status of the workflow. Raises ``UserError`` for a budget that is none, for a
    selector of tokens, and as ``_run.required``."""
    configfiles = _run.required(args)
    changes = {"grid": {"selectors": args.selector}} if args.selector else {}
    config = _run.check(configfiles, changes)
    tokens = token_rankings(config)
    if tokens and args.selector:
        problem, do = f"{tokens[0]} ranks tokens and lists no text", "name a selector of texts"
        raise UserError(problem, where="--selector", do=do)
    lists = [
        {**cell, "selector": name, "beta": _beta(args, cell, name)}
        for cell, name in itertools.product(grid.cells(config["grid"]), config["grid"]["selectors"])
        if name not in tokens
    ]
    paths_of_lists = [paths.REMOVAL.format(**wildcards) for wildcards in lists]
    # Of a corpus, every list can have its manifest.
    with_manifests = [wildcards for wildcards in lists if _corpus(wildcards["dataset"])]
    status = 0
    if one_process.suits(args, config):
        with one_process.held(args, configfiles[-1], config) as pipeline:
            ranking = pipeline(config)
            ranking.make(
                ranking.make_vectors,
                *(partial(ranking.make_scores, of["selector"]) for of in lists),
                *(partial(ranking.make_list, of["selector"], of["beta"]) for of in lists),
                *(
                    partial(ranking.make_corpus_manifest, of["selector"], of["beta"])
                    for of in with_manifests
                ),
            )
    else:
        beside = [paths.MANIFEST.format(**wildcards) for wildcards in with_manifests]
        status = _run.run([*paths_of_lists, *beside], configfiles, args)
    if status == 0 and not _run.is_dry(args):
        if args.json:
            _as_json.put(paths_of_lists)
        else:
            print("\n".join(paths_of_lists))
    return status


def _counts(dataset: str) -> Mapping[str, Any]:
    """Return what was counted of a dataset; nothing where nothing is ranked."""
    from mamushi.io.files import read_json

    path = Path(paths.DATA_CARD.format(dataset=dataset))
    return dict(read_json(path)["counts"]) if path.is_file() else {}


def _corpus(dataset: str) -> int | None:
    """Return how many texts are ranked of a corpus that nobody labelled; None of other datasets."""
    return _counts(dataset).get("corpus")


def likely(cell: Mapping[str, Any], selector: str) -> str:
    """Return the budget of all texts of a corpus that are more likely than not of the domain.
    Raises ``UserError`` where there is none, or nobody ranked a corpus."""
    from mamushi.io.tables import read_metadata
    from mamushi.selection.removals import share_of

    path = Path(paths.POSTERIOR.format(**cell, selector=selector))
    n = _corpus(cell["dataset"])
    if n is None or not path.is_file():
        do = "rank one with mamushi rank --like, or give --budget"
        raise UserError("no corpus without labels is ranked here", where=path, do=do)
    return share_of(int(read_metadata(path)["likely"]), n)


def _beta(args: argparse.Namespace, cell: Mapping[str, Any], selector: str) -> str:
    """Return the budget as it stands in file names."""
    from mamushi.io.domains import FORGET, INFERENCE
    from mamushi.selection.removals import share_of

    if args.likely:
        return likely(cell, selector)
    if args.texts is not None:
        counts = _counts(cell["dataset"])
        if not counts:
            do = "rank first, with mamushi rank: it counts the texts"
            path = paths.DATA_CARD.format(dataset=cell["dataset"])
            raise UserError("nothing is ranked here", where=path, do=do)
        whole = counts["sections"][INFERENCE][FORGET]
        return share_of(args.texts, counts.get("corpus", whole))
    try:
        if 0 < float(args.budget) < 1:
            return paths.beta(args.budget)
    except ValueError:
        pass
    do = "give a share above 0 and below 1, such as 0.125"
    raise UserError(f"{args.budget!r} is no budget", where="--budget", do=do)
