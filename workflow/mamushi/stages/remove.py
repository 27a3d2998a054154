"""List the examples to remove at one budget, with a manifest.

The manifest says what the list was made from (digests of data, model, embeddings and scores, which
the scores carry along; settings; versions), the digest of the list itself, and the removal and
preservation to expect of it, predicted from the scores of a selector that estimates the
log-density ratio.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", type=Path, required=True, help="scores to rank by")
    parser.add_argument(
        "--ratio", type=Path, required=True, help="scores that estimate the log-density ratio"
    )
    parser.add_argument("--out", type=Path, required=True, help="the removals table to write")
    parser.add_argument("--manifest", type=Path, required=True, help="the manifest (JSON) to write")
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help='{"dataset", "model", "seed", "selector", "kind", "settings", "beta"}',
    )


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts import read_metadata, read_table, write_table
    from mamushi.errors import UserError
    from mamushi.files import write_json
    from mamushi.provenance import provenance
    from mamushi.registry import plugin
    from mamushi.selection.removals import count, manifest, removals

    chosen = args.settings
    scores = read_table(args.scores, "scores")
    ratio = read_table(args.ratio, "scores")
    made = provenance(chosen, scores=args.scores, ratio=args.ratio)
    ranked, estimated = read_metadata(args.scores), read_metadata(args.ratio)
    sources = ranked["provenance"]["inputs"]
    for name in ("examples", "embeddings"):
        if estimated["provenance"]["inputs"][name] != sources[name]:
            raise UserError(
                f"was made from other {name} than {args.scores}",
                where=args.ratio,
                do="delete both and score again",
            )
    embedded = ranked["embedded"]
    made["inputs"] = {**embedded["inputs"], **sources, **made["inputs"]}
    made["embedding"] = embedded["settings"]["embedding"]
    by_chance = bool(plugin("selector", chosen["kind"]).literals.get("BY_CHANCE", False))
    k = count(chosen["beta"], scores["rank"].length() - scores["rank"].null_count)
    named = {
        key: chosen[key]
        for key in ("dataset", "model", "seed", "selector", "kind", "settings", "beta")
    }
    content = manifest(scores, ratio, k, by_chance, {**named, "provenance": made})
    write_table(args.out, "removals", removals(scores, k), metadata={"provenance": made})
    write_json(args.manifest, content)
