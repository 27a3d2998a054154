"""Unlearn the texts of a list in the model that was ranked with: the workflow's target `unlearned`.

It adds a section `unlearning` with that list to the configuration, and runs the workflow. The
dataset has to have an evaluation section: texts that the model has not seen, on
which the result is measured.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from mamushi_cluster.commands import _run
from mamushi_cluster.hooks import MINE


def run(
    list: Path,
    /,
    *,
    configfile: Path = MINE,
    unlearner: str = "neggrad_plus",
    how: _run.How = _run.How(),
) -> tuple[int, Any]:
    """Return the exit status of the workflow. Raises ``UserError`` for a list or a configuration
    that is not there.

    :param list: What to unlearn: a removal list, a table with a column id, or ids, one a line.
    :param configfile: The configuration that ranked.
    :param unlearner: How to unlearn.
    """
    from mamushi.config.grid import cells
    from mamushi.io import paths
    from mamushi.registry import plugin
    from mamushi.unlearning.removal import read_list
    from mamushi_extras.lists.files import unlearned_lists

    read_list(list)
    trains = plugin("unlearner", unlearner).trains
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", list.stem).lstrip("._-") or "list"
    grid = _run.check([configfile])["grid"]
    section: dict[str, Any] = {
        **{key: grid[key] for key in ("datasets", "models", "seeds")},
        "unlearners": [unlearner],
        "lists": {name: str(list)},
    }
    unlearned_lists(_run.check([configfile], {"unlearning": section}))
    changes = f" --config {shlex.quote(f'unlearning={json.dumps(section)}')}"
    how = replace(how, snakemake_args=how.snakemake_args + changes)
    status, done = _run.run(["unlearned"], [configfile], how), []
    for cell in cells(grid) if status == 0 and not how.dry_run else ():
        written = paths.TRAINED.format(**cell, arm=f"{unlearner}/lists/{name}")
        card = paths.MODEL_CARD.format(model=cell["model"])
        what = f"--model-card {card} --trained {written}" if trains else f"{written} --to edit"
        done.append(cell | {"unlearned": written, "export": f"mamushi export {what} --out FOLDER"})
        print("unlearned: {unlearned}\nto take home: {export}".format(**done[-1]))
    return status, done
