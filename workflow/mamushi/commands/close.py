"""Find the texts that stay and restate a removed one: in other order, reworded, or as a quote.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet. The texts that
models are trained on are searched, of both domains, by their words; of long documents, the windows.
FILE is a list of its own, each text beside the removed one that it is nearest to: `mamushi apply
LIST --close FILE` removes both.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi_extras.windows.windows import Span

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
    from mamushi.commands import _removal_list
    from mamushi.data.rewriting import refuse_existing
    from mamushi.evaluation.masking import mask
    from mamushi.evidence.close import close
    from mamushi.io import schemas
    from mamushi.io.digests import of_text
    from mamushi.io.domains import EVALUATION
    from mamushi.io.files import sha256
    from mamushi.io.tables import read_table, write_table
    from mamushi.unlearning.removal import read_ids
    from mamushi_extras.unlabelled.like import GIVEN
    from mamushi_extras.windows.windows import document_of

    refuse_existing(args.out)
    listed = _removal_list.read(args.list)
    examples, copies = listed.all_copies()
    texts = read_table(examples, schemas.EXAMPLES).to_pylist()
    of = document_of if listed.whole else str
    digests = {row["id"]: row["text_sha256"] for row in listed.duplicates()}
    gone = {*listed.ids, *listed.copied}
    # Without labels a document goes for a listed window, and its other windows are not unwanted.
    sought = gone if listed.labelled else {*read_ids(args.list)}
    removed = [row for row in texts if (of if listed.labelled else str)(row["id"]) in sought]
    # Examples beside a corpus are given, and not trained on.
    trained = [row for row in texts if row["section"] != EVALUATION and not row.get(GIVEN)]
    kept = [row for row in trained if of(row["id"]) not in gone]
    left = [_left(row, copies(row["id"]), listed.windows) for row in kept]
    found = close([row["text"] for row in removed], left)
    rows = [
        {
            "id": kept[each.kept]["id"],
            "domain": kept[each.kept]["domain"],
            "copies": (also := sorted(copies(kept[each.kept]["id"]))),
            "text_sha256": of_text(kept[each.kept]["text"]),
            "copies_sha256": [digests[name] for name in also],
            "removed": removed[each.removed]["id"],
            "share": each.share,
            "words": each.words,
        }
        for each in found
    ]
    write_table(args.out, schemas.CLOSE, rows, metadata={"list_sha256": sha256(args.list)})
    unit = "windows" if listed.divided else "texts"
    print(f"{len(found):,} of the {len(kept):,} {unit} that stay restate a removed one")
    for each in found[:FIRST]:
        ends = (removed[each.removed], kept[each.kept])
        for name, row in zip(("removed", "stays"), ends, strict=True):
            said = " ".join(row["text"].split())[:WIDTH]
            print(f"  {name:<8}{row['id']}: {mask(said)}")
    print(args.out)


def _left(
    row: Mapping[str, Any], copies: Sequence[str], cut: Mapping[str, Collection[Span]]
) -> str:
    """Return what is left of a text that stays. Of a window, what overlaps windows that are cut out
    of its document is cut as well, unless a copy of it stands where nothing is."""
    from mamushi.data.cutting import without
    from mamushi_extras.windows.windows import document_of, span_of

    places = []
    for name in (row["id"], *copies) if cut else ():
        start, stop = span_of(name)
        spans = cut.get(document_of(name), ())
        shared = ({*range(max(start, a), min(stop, b))} for a, b in spans)
        places.append({at - start for each in shared for at in each})
    return without(row["text"], places[0]) if places and all(places) else str(row["text"])
