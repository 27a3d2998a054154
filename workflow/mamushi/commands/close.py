"""Find the texts that stay and restate a removed one: in other order, reworded, or as a quote.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet. The texts that
models are trained on are searched, of both domains, by their words. FILE is a list of its own, each
text beside the removed one that it is nearest to: `mamushi apply LIST --close FILE` removes both.
"""

from __future__ import annotations

import argparse
from pathlib import Path

GROUP = "act"
FIRST, WIDTH = 3, 88
"""Pairs that are printed, and the characters of a text."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", type=Path, metavar="LIST", help="a removal list of a run")
    out = "the Parquet file to write"
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=out)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` as ``_removal_list.read``, and for a list without its run."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.domains import EVALUATION
    from mamushi.artifacts.files import sha256
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.commands import _removal_list
    from mamushi.data.like import GIVEN
    from mamushi.data.rewriting import refuse_existing
    from mamushi.errors import UserError
    from mamushi.evaluation.masking import mask
    from mamushi.evidence.close import close

    refuse_existing(args.out)
    listed = _removal_list.read(args.list)
    examples, copies = listed.all_copies()
    if listed.loader.get("windows"):
        do = "rank without windows"
        raise UserError("is of windows, and texts are searched whole", where=args.list, do=do)
    texts = read_table(examples, schemas.EXAMPLES).to_pylist()
    gone = {*listed.ids}
    removed = [row for row in texts if row["id"] in gone]
    # Examples beside a corpus are given, and not trained on.
    trained = [row for row in texts if row["section"] != EVALUATION and not row.get(GIVEN)]
    kept = [row for row in trained if row["id"] not in gone]
    found = close([row["text"] for row in removed], [row["text"] for row in kept])
    rows = [
        {
            "id": kept[each.kept]["id"],
            "domain": kept[each.kept]["domain"],
            "copies": sorted(copies.get(kept[each.kept]["id"], [])),
            "removed": removed[each.removed]["id"],
            "share": each.share,
            "words": each.words,
        }
        for each in found
    ]
    write_table(args.out, schemas.CLOSE, rows, metadata={"list_sha256": sha256(args.list)})
    print(f"{len(found):,} of the {len(kept):,} texts that stay restate a removed one")
    for each in found[:FIRST]:
        ends = (removed[each.removed], kept[each.kept])
        for name, row in zip(("removed", "stays"), ends, strict=True):
            said = " ".join(row["text"].split())[:WIDTH]
            print(f"  {name:<8}{row['id']}: {mask(said)}")
    print(args.out)
