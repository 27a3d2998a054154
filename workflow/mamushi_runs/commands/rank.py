"""Rank a table of texts and list what to remove: `init`, the workflow and `show` in one command.

It writes the configuration and works in the folder in which it is started: an ordinary folder of
the workflow, in which Snakemake can be used as well. Where networks are to be trained, lists and
page come first, and then how certain they are. What was stopped goes on with the same command;
without DATA, with the configuration that is there.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.registry import Plugin, plugins, tree
from mamushi_runs.commands import _run

GROUP = "start"
QUICK = tree() / "profiles" / "default" / "quick.yaml"
"""What is laid over a configuration to do without refits."""
LATER = "How certain they are comes next; what is there stays when you stop it."
MISSING = (
    "Left out by --quick: how certain the lists are, what to expect of them, how many to remove. "
    "mamushi rank goes on with that."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `init`, and how to run."""
    from mamushi.commands import init

    init.arguments(parser)
    quick = "lists and their page alone, without how certain they are"
    parser.add_argument("--quick", action="store_true", help=quick)
    _run.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status: of the workflow where that failed. Raises ``UserError`` as `init`
    does, and for options of a configuration that is there already."""
    from mamushi.commands import init, show
    from mamushi.io import paths

    if args.data is not None or not args.out.is_file():
        init.write_configuration(args)
    elif options_in_use := [name for name in init.CHOSEN if getattr(args, name) is not None]:
        do = "change it there, or give DATA as well, and --force to write over it"
        problem = f"is there already, and --{options_in_use[0]} says how to write it"
        raise UserError(problem, where=args.out, do=do)
    else:
        # It may have come from another folder.
        tables = (_run.read(args.out).get("datasets") or {}).values()
        of = [str(item["path"]) for item in tables if isinstance(item, dict) and "path" in item]
        for table in of:
            print(f"{args.out}: ranks {table}", flush=True)
    cells = _run.cells(_run.grid(args.out))
    before = _listed(cells)
    status = _rank(args, cells)
    if _run.is_dry(args):
        _as_json.put([])
    elif status == 0 and args.json:
        show.show(Path(paths.RESULTS), as_json=True)
    for path, listed in _listed(cells).items():
        was = before.get(path, listed)
        came, went = listed - was, was - listed
        if came or went:
            print(f"{path}: {len(came):,} texts came into the list, {len(went):,} left it")
    return status


def _rank(args: argparse.Namespace, cells: Iterable[Mapping[str, str]]) -> int:
    """Run the workflow and show what it made. Return the exit status."""
    from mamushi.commands import show
    from mamushi.io import paths
    from mamushi.rooms import additions

    selectors = _selectors(args.out)
    pages = [pattern for patterns in additions("cell_pages") for pattern in patterns()]
    lists = ["removals", *(page.format(**cell) for page in pages for cell in cells)]
    dry = _run.is_dry(args)
    seen = all(Path(path).exists() for path in lists[1:])
    config = _run.read(args.out)
    models, datasets = (config.get(name) or {} for name in ("models", "datasets"))
    # What is measured against gold is not of a corpus that nobody labelled.
    corpora = [cell for cell in cells if unlabelled(datasets.get(cell["dataset"], {}))]
    ranked = [name for name, item in selectors.items() if item.unit != "tokens"]
    first = args.quick or (not seen and not dry and _trains_networks(selectors))
    if first:
        status = _run.run(lists, [args.out, QUICK], args)
        if status or dry or args.quick:
            return status or (0 if dry else _shown(MISSING))
        # Masks follow once, with what is known of them then.
        _shown(LATER, tokens=False)
    # What is told of the lists: the rest of the evidence takes longer.
    figure = paths.CELL_FIGURE.replace("{figure}", show.SHOWN_FIGURE)
    evidence = (figure,) if corpora else (paths.FRONTIER, figure)
    target_paths = [*lists, *(pattern.format(**cell) for cell in cells for pattern in evidence)]
    target_paths += [
        paths.PREDICTED.format(**cell)
        for cell in cells
        if cell not in corpora and "embeddings" not in models.get(cell["model"], {})
    ]
    # Also where the lists are there: `show` reads them.
    target_paths += [
        paths.SCORES.format(**cell, selector=name) for cell in cells for name in ranked
    ]
    status = _run.run(target_paths, [args.out], args)
    if not (status or dry) and (next_paths := _likely(corpora, ranked)):
        status = _run.run(next_paths, [args.out], args)
    return status if status or dry else show.show(paths.RESULTS, texts=not first)


def _likely(cells: Sequence[Mapping[str, Any]], selectors: Sequence[str]) -> list[str]:
    """Return the lists of all that is more likely than not of the domain, with their manifests."""
    from mamushi.io import paths
    from mamushi_runs.commands import list as lists

    results = []
    for cell, name in itertools.product(cells, selectors):
        # None is, or all are: no list.
        with contextlib.suppress(UserError):
            wildcards = {**cell, "selector": name, "beta": lists.likely(cell, name)}
            results += [pattern.format(**wildcards) for pattern in (paths.REMOVAL, paths.MANIFEST)]
    return results


def _listed(cells: Iterable[Mapping[str, str]]) -> dict[Path, set[str]]:
    """Return the ids of each list that is there."""
    from mamushi.io import paths
    from mamushi.unlearning.removal import read_ids

    results = {}
    for cell in cells:
        for path in sorted(Path().glob(paths.REMOVAL.format(**cell, selector="*", beta="*"))):
            # A damaged one is made again.
            with contextlib.suppress(UserError):
                results[path] = set(read_ids(path))
    return results


def _shown(next_paths: str, *, tokens: bool = True) -> int:
    """Show the lists, and say what is not there yet. Return 0."""
    from mamushi.commands import show
    from mamushi.io import paths

    show.show(paths.RESULTS, tokens=tokens)
    print(f"\n{next_paths}\n", flush=True)
    return 0


def _selectors(configfile: Path) -> dict[str, Plugin]:
    """Return the plug-in of each selector of the grid."""
    results = _run.read(configfile)
    defined, kinds_by_name = results.get("selectors") or {}, plugins("selector")
    names = results["grid"].get("selectors") or ["mamushi"]
    kinds = {name: (defined.get(name) or {}).get("kind", name) for name in names}
    return {name: kinds_by_name[kind] for name, kind in kinds.items() if kind in kinds_by_name}


def _trains_networks(selectors: Mapping[str, Plugin]) -> bool:
    """Tell whether a selector trains networks: then refits take as long as several rankings, and
    else no time worth a second run."""
    return any("hidden" in item.settings for item in selectors.values())
