"""Remove the texts of a list from a table, or cut its windows out of them: the rest of it, byte for
byte, with a receipt.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet, also a copy of
it, whose copies go with it, or ids of your own: a text file with one a line, or a table with a
column `id`. The rows are found by these ids, and their texts have to be those that were ranked. The
result has the format of the data: CSV, TSV and JSON Lines, plain or packed (.gz, .zst; a zip
unpacked), Parquet, Arrow, a folder of shards, or a folder that Hugging Face `datasets` saved.
FILE.receipt.json says what was done, with digests.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io.copies import display_url, is_remote
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.provenance import versions
from mamushi_curate.commands import _places, _row_options
from mamushi_curate.matching import RowRemoval

if TYPE_CHECKING:
    from mamushi_curate.commands._removal_list import ListedTexts
    from mamushi_curate.rewriting import Rewritten


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", type=Path, metavar="LIST", help="what to remove")
    data = "the table, a file or a folder, here or at a URL"
    parser.add_argument("--data", required=True, help=data)
    _places.arguments(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="what to write")
    _row_options.arguments(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the table and its receipt: the receipt first, so that no table is without one.

    Raises ``UserError`` as ``_removal_list.read_list``, ``rewriting.rewrite`` and, of URLs,
    ``remote.fetch_copy``.
    """
    from mamushi_curate.commands import _removal_list
    from mamushi_curate.rewriting import refuse_existing, rewrite

    copy, data = _places.fetched_place(args, "data"), display_url(str(args.data))
    args.data = copy if is_remote(args.data) else Path(args.data)
    listed = _removal_list.read_list(args.list)
    removal = listed.removal(args, args.data)
    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    request, earlier = _request(args, listed, removal), _earlier(receipt)
    if _is_of(earlier, request, args.out, args.data):
        print(f"{args.out}: there already, by the same command")
        _as_json.put(earlier)
        return
    refuse_existing(args.out)
    if not earlier:
        refuse_existing(receipt)
    done: dict[str, Any] = {}

    def record(written: Rewritten) -> None:
        # Another command may have written there meanwhile.
        refuse_existing(args.out)
        done.update(request | _result(data, str(args.out), listed, removal, written))
        write_json(receipt, done)

    try:
        rewrite(args.data, args.out, removal, dialect=listed.dialect(args), record=record)
    except BaseException:
        if done:
            receipt.unlink(missing_ok=True)
        raise
    if args.json:
        _as_json.put(done)
    else:
        _say(str(args.out), listed, removal, done["ids"])


def _say(place: str, listed: ListedTexts, removal: RowRemoval, ids: Mapping[str, Any]) -> None:
    print(*listed.report(removal), sep="\n")
    if missing := ids["not_found"]:
        print(f"{len(missing):,} ids of the list are not there, the first is {missing[0]!r}")
    if removal.changed:
        print(f"{removal.changed:,} of them have another text than the one that was ranked")
    if listed.texts and not removal.compared:
        print("their texts were not compared with those that were ranked")
    if listed.cross_posts:
        print(f"{len(listed.cross_posts):,} cross-posts stay: they stood in both domains")
    print(place)


def _earlier(receipt: Path) -> dict[str, Any]:
    """Return the receipt of an earlier command, perhaps killed before its table; empty without."""
    try:
        done = read_json(receipt)
        return done if {"list", "written", "rows"} <= done.keys() else {}
    except (UserError, OSError):
        return {}


def _is_of(done: Mapping[str, Any], request: Mapping[str, Any], out: Path, data: Path) -> bool:
    """Return whether a receipt says that the same was asked for, and table and data are those that
    it is of."""
    from mamushi_curate.rewriting import table_files

    if not done or not out.exists():
        return False
    if any(done.get(name) != value for name, value in request.items()):
        return False
    for name, place in (("data", data), ("written", out)):
        digests = {str(path.relative_to(place)): sha256(path) for path in table_files(place)}
        if done[name]["sha256"] not in (digests, *digests.values()):
            return False
    return True


def _request(args: argparse.Namespace, listed: ListedTexts, removal: RowRemoval) -> dict[str, Any]:
    """Return what was asked for, with the digest of the list."""
    manifest = listed.manifest or {}
    names = ("dataset", "model", "seed", "selector", "beta")
    return {
        "list": {"path": str(args.list), "sha256": sha256(args.list)},
        "of": {name: manifest.get(name) for name in names},
        "id": removal.column or "the number of the row, from 1",
        "versions": versions(),
    }


def _result(
    data: str, out: str, listed: ListedTexts, removal: RowRemoval, written: Rewritten
) -> dict[str, Any]:
    """Return what was done, with digests, to what lies where."""

    def of_files(digests: dict[str, str]) -> str | dict[str, str]:
        """Return the digest of the one file, of a folder those of all."""
        return digests if written.data.is_dir() else next(iter(digests.values()))

    return {
        "data": {"path": data, "sha256": of_files(written.read)},
        "written": {"path": out, "sha256": of_files(written.written)},
        "rows": {
            "read": removal.read,
            "on_the_list": removal.removed,
            "others": removal.read - removal.removed,
            "without_an_id": removal.unnamed,
        },
        **removal.counts(),
        "texts": {"compared": removal.compared, "changed": removal.changed},
        "ids": listed.receipt(removal),
        # They stood in both domains, and so are in no list.
        "cross_posts": listed.cross_posts,
    }
