"""Remove the texts of a list from a table, or cut its windows out of them: the rest of it, byte for
byte, with a receipt.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet, also away from
it, or ids of your own: a text file with one a line, or a table with a column `id`. Texts have to be
those that were ranked. The result has the format of the data; a zip is unpacked. FILE.receipt.json
says what was done, with digests.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io.copies import display_url, is_remote
from mamushi.io.digests import versions
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.tabular import find
from mamushi_curate.commands import _options

if TYPE_CHECKING:
    from mamushi_curate.listed import ListedTexts, RowRemoval

ROW_NUMBERS = "the number of the row, from 1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", type=Path, metavar="LIST", help="what to remove")
    data = "the table, a file or a folder, here or at a URL"
    parser.add_argument("--data", required=True, help=data)
    parser.add_argument(
        "--out", required=True, type=_options.local_path, metavar="FILE", help="what to write"
    )
    column = "column with the ids (default: the ranked dataset's; of a list of your own `id`)"
    names = parser.add_mutually_exclusive_group()
    names.add_argument("--id", metavar="COLUMN", help=column)
    rows = "the ids are numbers of rows, from 1, in the order of the files"
    names.add_argument("--rows", action="store_true", help=rows)
    text = "column with the texts, which are compared with those that were ranked (default: as "
    parser.add_argument("--text", metavar="COLUMN", help=text + "ranked)")
    _options.dialect(parser)
    changed = "go by the ids also where the texts are others now, or cannot be compared"
    parser.add_argument("--changed-texts", action="store_true", help=changed)
    missing = "go on where the table lacks some of the listed ids"
    parser.add_argument("--missing-ids", action="store_true", help=missing)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the table and its receipt: the receipt first, so that no table is without one."""
    from mamushi_curate.listed import read_list
    from mamushi_curate.rewriting import refuse_existing, rewrite

    data = display_url(args.data)
    args.data = _options.fetch(args.data)[1] if is_remote(data) else _options.local_path(data)
    listed = read_list(args.list)
    removal = listed.removal(args, args.data)
    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    if _is_done(receipt, args, removal.column or ROW_NUMBERS):
        print(f"{args.out}: there already, by the same command")
        return _as_json.put(read_json(receipt))
    refuse_existing(args.out)
    done: dict[str, Any] = {}

    def record(read: dict[str, str], written: dict[str, str]) -> None:
        # Another command may have written there meanwhile.
        refuse_existing(args.out)
        done.update(_receipt(args, listed, removal))
        for name, path, of in (("data", data, read), ("written", str(args.out), written)):
            sha256 = of if args.data.is_dir() else next(iter(of.values()))
            done[name] = {"path": path, "sha256": sha256}
        write_json(receipt, done)

    try:
        rewrite(args.data, args.out, removal, dialect=listed.dialect(args), record=record)
    except BaseException:
        if done:
            receipt.unlink(missing_ok=True)
        raise
    _as_json.put(done)
    ids = done["ids"]
    how = "nothing of them is left" if listed.cut else f"{ids['copies_found']:,} of them as copies"
    print(f"{removal.removed:,} of {removal.read:,} rows removed, {how}")
    if listed.cut:
        print(f"{removal.cut_characters:,} characters cut from {removal.cut_rows:,} rows")
    if ids["not_found"]:
        print(f"{len(ids['not_found']):,} ids of the list are not there, see the receipt")
    if listed.texts and not removal.compared:
        print("their texts were not compared with those that were ranked")
    print(args.out)


def _is_done(receipt: Path, args: argparse.Namespace, column: str) -> bool:
    """Tell by its receipt whether the table is there: of the same list, ids and data."""
    places = (("list", args.list), ("data", args.data), ("written", args.out))
    with contextlib.suppress(UserError, OSError, LookupError):
        done = read_json(receipt)
        is_same = all(done[name]["sha256"] == _digests(place) for name, place in places)
        return is_same and done["id"] == column
    return False


def _digests(place: Path) -> str | dict[str, str]:
    """Return the SHA-256 of a file, or by name those of a folder's files."""
    if place.is_dir():
        return {str(path.relative_to(place)): sha256(path) for path in find(place)}
    return sha256(place)


def _receipt(args: argparse.Namespace, listed: ListedTexts, removal: RowRemoval) -> dict[str, Any]:
    """Return what was asked for and what was done."""
    names = ("dataset", "model", "seed", "selector", "beta")
    read, gone = removal.read, removal.removed
    cut = {"rows": removal.cut_rows, "characters": removal.cut_characters}
    return {
        "list": {"path": str(args.list), "sha256": sha256(args.list)},
        "of": {name: (listed.manifest or {}).get(name) for name in names},
        "id": removal.column or ROW_NUMBERS,
        "versions": versions(),
        "rows": {"read": read, "on_the_list": gone, "others": read - gone},
        **({"cut": cut} if listed.cut else {}),
        "texts": {"compared": removal.compared, "changed": removal.changed},
        "ids": listed.receipt(removal),
    }
