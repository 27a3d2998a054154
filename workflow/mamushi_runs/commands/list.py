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

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi_runs.commands import _run

GROUP = "decide"


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
    """Return the exit status of the workflow. Raises ``UserError`` for a budget that is none, and
    as ``_run.required``."""
    from mamushi.errors import suggestion
    from mamushi.io import paths
    from mamushi.registry import plugins

    configfiles = _run.required(args)
    grid = _run.grid(*configfiles)
    selectors = args.selector or grid.get("selectors") or ["mamushi"]
    selector_kinds = plugins("selector")
    definitions: dict[str, Any] = {}
    for path in configfiles:
        definitions |= _run.read(path).get("selectors") or {}
    valid_names = {*selector_kinds, *definitions}
    if unknown := [name for name in selectors if name not in valid_names]:
        problem = f"unknown selector {unknown[0]!r}{suggestion(unknown[0], valid_names)}"
        raise UserError(
            problem, where="--selector", do=f"known are: {', '.join(sorted(valid_names))}"
        )
    kinds = {name: (definitions.get(name) or {}).get("kind", name) for name in selectors}
    ranking = {name for name, item in selector_kinds.items() if item.unit == "tokens"}
    tokens = [name for name in selectors if kinds[name] in ranking]
    if tokens and args.selector:
        problem, do = f"{tokens[0]} ranks tokens and lists no text", "name a selector of texts"
        raise UserError(problem, where="--selector", do=do)
    selectors = [name for name in selectors if name not in tokens]
    target_paths = [
        paths.REMOVAL.format(**cell, selector=selector, beta=_beta(args, cell, selector))
        for cell, selector in itertools.product(_run.cells(grid), selectors)
    ]
    # Of a corpus, every list can have its manifest.
    beside = [
        str(Path(path).with_suffix(".json"))
        for path in target_paths
        if _corpus(str((paths.wildcards(paths.REMOVAL, path) or {}).get("dataset")))
    ]
    status = _run.run([*target_paths, *beside], configfiles, args)
    if status == 0 and not _run.is_dry(args):
        if args.json:
            _as_json.put(target_paths)
        else:
            print("\n".join(target_paths))
    return status


def _counts(dataset: str) -> Mapping[str, Any]:
    """Return what was counted of a dataset; nothing where nothing is ranked."""
    from mamushi.io import paths
    from mamushi.io.files import read_json

    path = Path(paths.DATA_CARD.format(dataset=dataset))
    return dict(read_json(path)["counts"]) if path.is_file() else {}


def _corpus(dataset: str) -> int | None:
    """Return how many texts are ranked of a corpus that nobody labelled; None of other datasets."""
    return _counts(dataset).get("corpus")


def likely(cell: Mapping[str, Any], selector: str) -> str:
    """Return the budget of all texts of a corpus that are more likely than not of the domain.
    Raises ``UserError`` where there is none, or nobody ranked a corpus."""
    from mamushi.io import paths
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
    from mamushi.io import paths
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
