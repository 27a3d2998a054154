"""List the examples to remove at one budget, with a manifest.

The manifest says what the list was made from (digests of data, embeddings, model and scores,
settings, versions), the digest of the list itself, and the removal and preservation to expect of
it, predicted from the scores of a selector that estimates the log-density ratio.
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
    parser.add_argument("--embeddings", type=Path, required=True, help="embeddings they come from")
    parser.add_argument("--examples", type=Path, required=True, help="the examples table")
    parser.add_argument(
        "--model-card", type=Path, required=True, help="card of the embedding model"
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
    made = provenance(
        chosen,
        examples=args.examples,
        embeddings=args.embeddings,
        model_card=args.model_card,
        scores=args.scores,
        ratio=args.ratio,
    )
    for path in (args.scores, args.ratio):
        known = read_metadata(path).get("provenance", {}).get("inputs", {})
        for name in ("examples", "embeddings"):
            if known.get(name) != made["inputs"][name]:
                raise UserError(
                    f"was made from another version of {getattr(args, name)}",
                    where=path,
                    do="delete it and score again",
                )
    by_chance = bool(plugin("selector", chosen["kind"]).literals.get("BY_CHANCE", False))
    k = count(chosen["beta"], scores["rank"].length() - scores["rank"].null_count)
    named = {
        key: chosen[key]
        for key in ("dataset", "model", "seed", "selector", "kind", "settings", "beta")
    }
    content = manifest(scores, ratio, k, by_chance, {**named, "provenance": made})
    write_table(args.out, "removals", removals(scores, k), metadata={"provenance": made})
    write_json(args.manifest, content)
