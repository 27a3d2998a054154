"""Remove the texts of a list from a table: the rest of it, byte for byte, with a receipt.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet, whose copies go
with it, or ids of your own: a text file with one a line, or a table with a column `id`. The result
has the format of the data: CSV, TSV and JSON Lines, plain or packed (.gz, .zst, .zip), Parquet, a
folder of shards, or a folder that Hugging Face `datasets` saved. FILE.receipt.json says what was
done, with digests.
"""

from __future__ import annotations

import argparse
from pathlib import Path

GROUP = "act"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", type=Path, metavar="LIST", help="what to remove")
    parser.add_argument("--data", required=True, type=Path, help="the table, a file or a folder")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="what to write")
    column = "column with the ids (default: the ranked dataset's; else `id`, else row numbers)"
    parser.add_argument("--id", metavar="COLUMN", help=column)
    how = parser.add_mutually_exclusive_group()
    split = "write what is removed as well: NAME.forget.csv and NAME.retain.csv for NAME.csv"
    how.add_argument("--split", action="store_true", help=split)
    weights = "write all rows, with a column `weight`: 0 for what is on the list, else 1"
    how.add_argument("--weights", action="store_true", help=weights)


def run(args: argparse.Namespace) -> None:
    """Write the table and its receipt.

    Raises ``UserError`` as ``_removal_list.read`` and ``rewriting.rewrite``, and when none of the
    ids is in the data.
    """
    from mamushi.artifacts.files import sha256, write_json
    from mamushi.artifacts.provenance import versions
    from mamushi.commands import _removal_list
    from mamushi.data.rewriting import Removal, Targets, rewrite, tables
    from mamushi.errors import UserError

    listed = _removal_list.read(args.list)
    removal = Removal(listed.all, listed.column(args.id, args.data))
    targets = Targets(args.out, weights=args.weights)
    if args.split:
        targets = Targets(part_of(args.out, "retain"), part_of(args.out, "forget"))
    missing: list[str] = []

    def check() -> None:
        """Before anything is written: a list of another table would remove nothing."""
        ids = (*listed.ids, *sorted(listed.copied))
        missing.extend(name for name in ids if name not in removal.found)
        if not removal.found:
            where = "number of a row" if removal.column is None else f"column {removal.column!r}"
            what = f"none of its {len(removal.ids)} ids is there ({where})"
            do = "name the column with --id, or give the table that was ranked"
            raise UserError(what, where=args.data, do=do)

    rewrite(args.data, targets, removal, check)

    def digests(path: Path) -> str | dict[str, str]:
        if path.is_file():
            return sha256(path)
        return {p.relative_to(path).as_posix(): sha256(p) for p in tables(path)}

    about, copies = listed.manifest or {}, len(removal.found & listed.copied)
    receipt = {
        "list": {"path": str(args.list), "sha256": sha256(args.list)},
        "of": {name: about.get(name) for name in ("dataset", "model", "seed", "selector", "beta")},
        "data": {"path": str(args.data), "sha256": digests(args.data)},
        "written": [{"path": str(path), "sha256": digests(path)} for path in targets.all],
        "id": removal.column or "the number of the row, from 1",
        "rows": {
            "read": removal.read,
            "on_the_list": removal.removed,
            "others": removal.read - removal.removed,
            "without_an_id": removal.unnamed,
        },
        "ids": {
            "listed": len(listed.ids),
            "copies": len(listed.copied),
            "found": len(removal.found),
            "copies_found": copies,
            "not_found": missing,
        },
        "cross_posts": {
            "stay": listed.cross_posts,
            "why": "they stood in both domains, and so are in no list",
        },
        "versions": versions(),
    }
    write_json(args.out.with_name(f"{args.out.name}.receipt.json"), receipt)
    done = "weighted 0" if args.weights else "split off" if args.split else "removed"
    print(f"{removal.removed:,} of {removal.read:,} rows {done}, {copies:,} of them as copies")
    if missing:
        print(f"{len(missing):,} ids of the list are not there, the first is {missing[0]!r}")
    if listed.cross_posts:
        print(f"{len(listed.cross_posts):,} cross-posts stay: they stood in both domains")
    for path in targets.all:
        print(path)


def part_of(path: Path, split: str) -> Path:
    """Return ``NAME.forget.csv.gz`` for ``NAME.csv.gz``."""
    from mamushi.artifacts.tabular import PACKED

    packing = path.suffix if path.suffix.lower() in PACKED else ""
    bare = path.with_name(path.name.removesuffix(packing))
    return bare.with_name(f"{bare.stem}.{split}{bare.suffix}{packing}")
