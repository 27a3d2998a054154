"""Retrainings of one cell that differ in nothing but the file of their removal list.

There is no index of them that could be out of date: the cards are it. A card says all that a
fine-tune depends on, with a digest of the set of removed texts, and is deleted with its results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from mamushi.errors import UserError
from mamushi.running import claims


def digest(removed: Sequence[str]) -> str:
    """SHA-256 of a set of ids, in whatever order they are listed."""
    return hashlib.sha256(json.dumps(sorted(set(removed))).encode()).hexdigest()


@contextmanager
def copied(args: argparse.Namespace, origin: dict[str, Any]) -> Iterator[Path | None]:
    """Within the block, no other retraining of this cell on the same texts runs.

    Gives the card of one that is finished, whose perplexities, step log and, if asked for, tensors
    have been written as this one's, under its own ``origin``; None if there is none. Always None
    for outputs that lie elsewhere than in results, and under `accelerate launch` with several
    processes, which would have to agree.
    """
    where = paths.wildcards(paths.RETRAINED_CARD, args.card)
    if where is None or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        yield None
        return
    name = json.dumps(_shared(origin), sort_keys=True)
    root = str(paths.under(where["root"], paths.CLAIMS))
    with claims.alone(name, args.stage, "which retrains on the same texts", root):
        for card in sorted(Path(where["root"]).glob(_everywhere(where))):
            if card != args.card and _copy(args, origin, card):
                print(f"trained on the same texts: took over {card.parent}", file=sys.stderr)
                yield card
                return
        yield None


def _everywhere(where: dict[str, str]) -> str:
    """The cards of all retrainings of a cell, as a pattern for ``glob`` from the root."""
    pattern = paths.RETRAINED_CARD.removeprefix("results/")
    return pattern.format(**{**where, "selector": "*", "beta": "*"})


def _shared(origin: dict[str, Any]) -> dict[str, Any]:
    """All that a fine-tune depends on: the set of texts, and not the file that lists them."""
    inputs = {name: value for name, value in origin["inputs"].items() if name != "removal"}
    return {**origin, "inputs": inputs}


def _copy(args: argparse.Namespace, origin: dict[str, Any], card: Path) -> bool:
    """Write the results of this card's fine-tune as those of ``args``, if they are the same."""
    from mamushi.artifacts.files import read_json, write_json
    from mamushi.artifacts.tables import read_metadata, read_table, write_table
    from mamushi.artifacts.tensors import drop_others

    try:
        record = read_json(card)
        theirs = {name: record.get(name) for name in origin}
        if None in theirs.values() or _shared(theirs) != _shared(origin):
            return False
        where = paths.wildcards(paths.RETRAINED_CARD, card)
        assert where is not None
        tables = {"perplexity": paths.PERPLEXITY, "train_log": paths.RETRAINED_LOG}
        sources = {name: paths.under(pattern=p, **where) for name, p in tables.items()}
        if any(read_metadata(path) != theirs for path in sources.values()):
            return False
        found = {name: read_table(path, name) for name, path in sources.items()}
        if args.tensors and not _copy_tensors(args.tensors, origin, theirs, where):
            return False
    except (UserError, FileNotFoundError):
        # It is being made, or made again.
        return False
    write_table(args.log_table, "train_log", found["train_log"], metadata=origin)
    drop_others(args.card, origin)
    write_json(args.card, record | origin)
    write_table(args.perplexity, "perplexity", found["perplexity"], metadata=origin)
    args.state.unlink(missing_ok=True)
    return True


def _copy_tensors(
    to: Path, origin: dict[str, Any], theirs: dict[str, Any], where: dict[str, str]
) -> bool:
    from mamushi.artifacts.tensors import trained_metadata
    from mamushi.lm.loading import copy_trained

    source = paths.under(pattern=paths.RETRAINED_TENSORS, **where)
    if not source.exists() or trained_metadata(source) != theirs:
        return False
    copy_trained(source, to, origin)
    return True
