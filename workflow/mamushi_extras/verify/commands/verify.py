"""Derive a removal list again from what its manifest names, and say what differs.

Runs the selector on the embeddings with the settings and the seed of the manifest, and compares
scores, ranking, list, copies, stability and expected values; so it does for the scores that the
selector derives from, and for those that the expected values rest on.

The exit code is 0 for a list that is what its manifest says to the last bit. It is 3 where another
processor, device or version computed other bits here, and these rank as alike as refits of the
scores do: all that does not depend on the machine was outcome to be the same, and the rest compared
statistically. It is 2 for a difference, of which the first is named.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.commands import _as_json

GROUP = "check"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "list", type=Path, metavar="LIST", help="a removal list, or the manifest beside it"
    )
    _as_json.argument(parser)


STATISTICALLY = 3
"""The exit code of a list that could be compared only statistically."""


def run(args: argparse.Namespace) -> int:
    """Return the exit code. Raises ``UserError`` that names the first difference."""
    from mamushi_extras.verify.verification import verify

    manifest = args.list.with_suffix(".json")
    outcome = verify(manifest)
    if args.json:
        texts = {"notes": outcome.notes, "statistically": outcome.statistics}
        _as_json.put({"manifest": manifest, "exactly": not outcome.statistics, **texts})
        return STATISTICALLY if outcome.statistics else 0
    for note in outcome.notes:
        print(f"note: {note}")
    if not outcome.statistics:
        print(f"{manifest}: the list is what its manifest says")
        return 0
    exact = "examples, embeddings, settings, seed, code, ranks, ids, copies, budget, manifest"
    print(f"exactly the same: {exact}")
    for line in outcome.statistics:
        print(f"statistically the same: {line}")
    print(f"{manifest}: the list is statistically what its manifest says")
    return STATISTICALLY
