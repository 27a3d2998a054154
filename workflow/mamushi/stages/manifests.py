"""Write the manifest of a selector's removal list at every budget.

A manifest says what the list was made from (digests of data, model, embeddings and scores, which
the scores carry along; settings; versions), the digest of the list itself, and the removal and
preservation to expect of it, predicted from the scores of a selector that estimates the
log-density ratio. It is apart from the list, because that estimate changes no list: another one
must not retrain anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("scores", "ratio", "duplicates")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", type=Path, required=True, help="scores to rank by")
    parser.add_argument(
        "--ratio", type=Path, required=True, help="scores that estimate the log-density ratio"
    )
    parser.add_argument(
        "--duplicates", type=Path, required=True, help="the dataset's duplicates table"
    )
    parser.add_argument(
        "--out", type=Path, required=True, nargs="+", help="manifests (JSON), one a budget"
    )
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help='{"dataset", "model", "seed", "selector", "kind", "settings", "budgets"}',
    )


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import read_metadata, read_table
    from mamushi.errors import UserError
    from mamushi.evidence.manifest import manifest
    from mamushi.registry import plugin
    from mamushi.selection.removals import budget_of

    chosen = args.settings
    scores = read_table(args.scores, "scores")
    ratio = read_table(args.ratio, "scores")
    duplicates = read_table(args.duplicates, "duplicates")
    ranked, estimated = read_metadata(args.scores), read_metadata(args.ratio)
    sources = ranked["provenance"]["inputs"]
    for name in ("examples", "embeddings"):
        if estimated["provenance"]["inputs"][name] != sources[name]:
            raise UserError(
                f"was made from other {name} than {args.scores}",
                where=args.ratio,
                do="delete both and score again",
            )
    made = provenance(chosen, scores=args.scores, ratio=args.ratio, duplicates=args.duplicates)
    embedded = ranked["embedded"]
    made["inputs"] = {**embedded["inputs"], **sources, **made["inputs"]}
    made["embedding"] = embedded["settings"]["embedding"]
    by_chance = bool(plugin("selector", chosen["kind"]).literals.get("BY_CHANCE", False))
    named = {
        key: chosen[key] for key in ("dataset", "model", "seed", "selector", "kind", "settings")
    }
    for path, beta in zip(args.out, chosen["budgets"], strict=True):
        about = {**named, "beta": beta, "provenance": made}
        k = budget_of(beta, scores)
        write_json(path, manifest(scores, ratio, duplicates, k, by_chance, about))
