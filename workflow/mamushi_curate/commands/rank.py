"""Rank a table of texts and list what to remove: `init`, the stages and `show` in one command.

One table and one model are ranked in this process; a grid, another profile, and a model that is to
be trained first, by Snakemake, in the same folder. Lists and page come first, and then how certain
they are. What was stopped goes on with the same command; without DATA, with the configuration that
is there.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.sources import is_unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.registry import tree
from mamushi.stages.tables import predicted_cells
from mamushi_cluster import hooks
from mamushi_cluster.commands import _run
from mamushi_curate.commands import init, show
from mamushi_curate.pipeline import fits_one_process, open_pipeline

QUICK = tree() / "profiles" / "default" / "quick.yaml"
"""What is laid over a configuration to do without refits."""


def run(
    data: init.Data = None,
    /,
    *,
    table: init.Table = init.Table(),
    quick: bool = False,
    how: _run.How = _run.How(),
) -> tuple[int, Any]:
    """Return the exit status. Raises ``UserError`` as `init` does, and for options of a
    configuration that is there already.

    :param quick: Lists and their page alone, without how certain they are.
    """
    out, usual = table.out, {**vars(init.Table()), "out": table.out, "force": table.force}
    if data is not None or not out.is_file():
        init.write_configuration(data, table)
    elif used := [name for name, value in vars(table).items() if value != usual[name]]:
        do = "change it there, or give DATA as well, and --force to write over it"
        raise UserError(f"is there already, and --{used[0]} says how to write it", where=out, do=do)
    config = _run.check([out])
    pages = [paths.RANKING.format(**cell) for cell in grid.cells(config["grid"])]
    is_seen = all(map(os.path.isfile, pages))
    if is_here := fits_one_process(how, config):
        _rank_here(out, how, config, quick, is_seen)
    elif (status := _rank_by_workflow(out, how, config, quick)) or how.dry_run:
        return status, []
    is_shown = is_here and not (is_seen or quick)
    manifests = show.show(paths.RESULTS, texts=not is_shown)
    if quick:
        print("\nmamushi rank goes on with how certain they are.\n")
    return 0, manifests


def _rank_here(
    out: Path, how: _run.How, config: Mapping[str, Any], quick: bool, seen: bool
) -> None:
    """Run the stages in this process: lists and page first, then how certain they are."""
    with open_pipeline(how, out, config) as pipeline:
        if quick or not (seen or config["evidence"]["refits"]["whole"] == 0):
            lists = pipeline(_run.check([out, QUICK]))
            lists.want_lists()
            lists.want(paths.RANKING)
            lists.make()
            if not quick:
                show.show(paths.RESULTS)
                print("\nHow certain they are comes next.\n", flush=True)
        if not quick:
            ranking = pipeline(config)
            ranking.want_lists()
            ranking.want(paths.RANKING)
            ranking.want_advice()
            ranking.make()
            for name in ranking.of_texts if ranking.is_corpus else ():
                # None is likely, or all are: no list.
                with contextlib.suppress(UserError):
                    ranking.make_likely_list(name)
        hooks.print_start_page([out])


def _rank_by_workflow(out: Path, how: _run.How, config: Mapping[str, Any], quick: bool) -> int:
    """Let Snakemake make the same files. Return its exit status."""
    cells = [*grid.cells(config["grid"])]
    corpora = [cell for cell in cells if is_unlabelled(config["datasets"][cell["dataset"]])]
    labelled = [cell for cell in cells if cell not in corpora]
    patterns = [(paths.RANKING, cells)]
    if not quick:
        predicted = [cell for cell in predicted_cells(config) if cell in labelled]
        patterns += [(paths.FRONTIER, labelled), (paths.PREDICTED, predicted)]
    targets = ["removals", *(path.format(**cell) for path, several in patterns for cell in several)]
    return _run.run(targets, [out, QUICK] if quick else [out], how)
