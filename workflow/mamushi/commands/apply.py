"""Remove the texts of a list from a table, or cut its windows out of them: the rest of it, byte for
byte, with a receipt.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet, whose copies go
with it, or ids of your own: a text file with one a line, or a table with a column `id`. The result
has the format of the data: CSV, TSV and JSON Lines, plain or packed (.gz, .zst, .zip), Parquet, a
folder of shards, or a folder that Hugging Face `datasets` saved. FILE.receipt.json says what was
done, with digests.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.commands._removal_list import RemovalList
    from mamushi.data.rewriting import Removal

GROUP = "act"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", type=Path, metavar="LIST", help="what to remove")
    parser.add_argument("--data", required=True, type=Path, help="the table, a file or a folder")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="what to write")
    column = "column with the ids (default: the ranked dataset's; else `id`, else row numbers)"
    parser.add_argument("--id", metavar="COLUMN", help=column)
    close = "what `mamushi close LIST` wrote: what restates a removed text goes as well"
    parser.add_argument("--close", type=Path, metavar="FILE", help=close)


def run(args: argparse.Namespace) -> None:
    """Write the table and its receipt.

    Raises ``UserError`` as ``_removal_list.read``, ``_removal_list.with_close`` and
    ``rewriting.rewrite``.
    """
    from mamushi.artifacts.files import write_json
    from mamushi.commands import _removal_list
    from mamushi.data.rewriting import Removal, refuse_existing, rewrite
    from mamushi.errors import UserError

    refuse_existing(args.out)
    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    refuse_existing(receipt)
    listed = _removal_list.read(args.list)
    if args.close:
        listed = _removal_list.with_close(listed, args.close)
    column = listed.column(args.id, args.data)
    if listed.windows:
        near = any(None in each.values() for each in listed.windows.values())
        if near and not listed.was_ranked(args.data):
            what = "was changed since it was ranked, and near copies are to be cut from it"
            raise UserError(what, where=args.data, do="give the table that was ranked")
        text, windows = listed.loader["text"], listed.windows
        removal = Removal(windows, column, text=text, windows=windows)
    else:
        removal = Removal(listed.all | listed.close, column)
    rewrite(args.data, args.out, removal)
    done = _receipt(args, listed, removal)
    write_json(receipt, done)
    copies, missing = done["ids"]["copies_found"], done["ids"]["not_found"]
    close = f"{done['ids']['close_found']:,}"
    rows = f"{removal.removed:,} of {removal.read:,} rows removed"
    if listed.windows:
        also = f", with {close} close windows" if args.close else ""
        print("{characters:,} characters cut from {rows:,} rows".format(**removal.cut) + also)
        print(f"{rows}, of which nothing would be left")
    else:
        also = f", {close} as close texts" if args.close else ""
        print(f"{rows}, {copies:,} of them as copies{also}")
    if missing:
        print(f"{len(missing):,} ids of the list are not there, the first is {missing[0]!r}")
    if listed.cross_posts:
        print(f"{len(listed.cross_posts):,} cross-posts stay: they stood in both domains")
    print(args.out)


def _receipt(args: argparse.Namespace, listed: RemovalList, removal: Removal) -> dict[str, Any]:
    """Return what was done, with digests."""
    from mamushi.artifacts.files import sha256
    from mamushi.artifacts.provenance import versions
    from mamushi.data.rewriting import tables
    from mamushi.data.windows import document_of

    def digests(path: Path) -> str | dict[str, str]:
        return sha256(path) if path.is_file() else {p.name: sha256(p) for p in tables(path)}

    about, of = listed.manifest or {}, document_of if listed.windows else str
    ids = [*listed.windows] or [*listed.ids, *sorted(listed.copied), *sorted(listed.close)]
    return {
        "list": {"path": str(args.list), "sha256": sha256(args.list)},
        "of": {name: about.get(name) for name in ("dataset", "model", "seed", "selector", "beta")},
        "data": {"path": str(args.data), "sha256": digests(args.data)},
        "written": {"path": str(args.out), "sha256": digests(args.out)},
        "id": removal.column or "the number of the row, from 1",
        "rows": {
            "read": removal.read,
            "on_the_list": removal.removed,
            "others": removal.read - removal.removed,
            "without_an_id": removal.unnamed,
        },
        **({"cut": removal.cut} if listed.windows else {}),
        "ids": {
            "listed": len(listed.ids),
            "copies": len(listed.copied),
            "close": len(listed.close),
            "found": len(removal.found),
            "copies_found": sum(of(name) in removal.found for name in listed.copied),
            "close_found": sum(of(name) in removal.found for name in listed.close),
            "not_found": [name for name in ids if name not in removal.found],
        },
        # They stood in both domains, and so are in no list.
        "cross_posts": listed.cross_posts,
        "versions": versions(),
    }
