"""Unlearn the texts of a list in the model that was ranked with: the workflow's target `unlearned`.

It adds a section `unlearning` with that list to the configuration, and runs the workflow. The
dataset has to have an evaluation section: texts that the model has not seen, on
which the result is measured.
"""

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi_cluster.commands import _run
from mamushi_cluster.hooks import MINE


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    kinds = "a removal list, a table with a column id, or ids, one a line"
    parser.add_argument("list", type=Path, metavar="LIST", help=f"the list to unlearn: {kinds}")
    config = "the configuration that ranked (default: %(default)s)"
    parser.add_argument("--configfile", type=Path, default=MINE, help=config)
    how = "how to unlearn (default: %(default)s)"
    parser.add_argument("--unlearner", default="neggrad_plus", help=how)
    _run.arguments(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> int:
    """Return the exit status of the workflow. Raises ``UserError`` for a list or a configuration
    that is not there."""
    from mamushi.config.grid import cells, unlearned_lists
    from mamushi.io import paths
    from mamushi.registry import plugin
    from mamushi.unlearning.removal import read_ids

    read_ids(args.list)
    trains = plugin("unlearner", args.unlearner).trains
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", args.list.stem).lstrip("._-") or "list"
    grid = _run.check([args.configfile])["grid"]
    section: dict[str, Any] = {
        **{key: grid[key] for key in ("datasets", "models", "seeds")},
        "unlearners": [args.unlearner],
        "lists": {name: str(args.list)},
    }
    unlearned_lists(_run.check([args.configfile], {"unlearning": section}))
    args.snakemake_args += f" --config {shlex.quote(f'unlearning={json.dumps(section)}')}"
    status = _run.run(["unlearned"], [args.configfile], args)
    done: list[dict[str, Any]] = []
    for cell in cells(grid) if status == 0 and not args.dry_run else ():
        written = paths.TRAINED.format(**cell, arm=f"{args.unlearner}/lists/{name}")
        card = paths.MODEL_CARD.format(model=cell["model"])
        command = f"mamushi export --model-card {card} --trained {written} --out FOLDER"
        done.append({**cell, "unlearned": written, "export": command if trains else None})
        print(f"unlearned: {written}", *([f"as a model: {command}"] if trains else []), sep="\n")
    _as_json.put(done)
    return status
