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

from mamushi.commands import _as_json, _places, _row_options
from mamushi.errors import UserError
from mamushi.io.copies import display_url, is_remote

if TYPE_CHECKING:
    from mamushi.commands._removal_list import ListedTexts
    from mamushi.data.matching import RowRemoval
    from mamushi.data.rewriting import Rewritten

GROUP = "act"


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
    from mamushi.commands import _removal_list

    copy, data = _places.fetched_place(args, "data"), display_url(str(args.data))
    args.data = copy if is_remote(args.data) else Path(args.data)
    listed = _removal_list.read_list(args.list)
    removal = listed.removal(args, args.data)
    done = _written(args, data, listed, removal, _request(args, listed, removal))
    if args.json:
        _as_json.put(done)
    elif not removal.read:
        print(f"{args.out}: there already, by the same command")
    else:
        _say(str(args.out), listed, removal, done["ids"])


def _written(
    args: argparse.Namespace,
    data: str,
    listed: ListedTexts,
    removal: RowRemoval,
    request: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the table, unless that was done before. Return its receipt, which says where ``data``
    lie."""
    from mamushi.data.rewriting import refuse_existing, rewrite
    from mamushi.io.files import read_json, write_json

    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    if _is_done(receipt, request, args.out, args.data):
        return read_json(receipt)
    refuse_existing(args.out)
    if not _is_ours(receipt):
        refuse_existing(receipt)
    done: dict[str, Any] = {}

    def record(written: Rewritten) -> None:
        # Another command may have written there meanwhile.
        refuse_existing(args.out)
        done.update({**request, **_receipt(listed, removal, written, data, str(args.out))})
        write_json(receipt, done)

    quote = listed.quote(args)
    # All that says what is written.
    options = [str(args.data), quote, removal.text, removal.part, args.changed_texts]
    try:
        rewrite(
            args.data, args.out, removal, quote=quote, record=record, request=[request, options]
        )
    except BaseException:
        if done:
            receipt.unlink(missing_ok=True)
        raise
    return done


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


def _request(args: argparse.Namespace, listed: ListedTexts, removal: RowRemoval) -> dict[str, Any]:
    """Return what was asked for, with the digest of the list."""
    from mamushi.io.files import sha256
    from mamushi.io.provenance import versions

    manifest = listed.manifest or {}
    return {
        "list": {"path": str(args.list), "sha256": sha256(args.list)},
        "of": {
            name: manifest.get(name) for name in ("dataset", "model", "seed", "selector", "beta")
        },
        "id": removal.column or "the number of the row, from 1",
        "versions": versions(),
    }


def _is_ours(receipt: Path) -> bool:
    """Return whether a receipt without its table is of a command that was killed between both."""
    from mamushi.io.files import read_json

    try:
        return {"list", "written", "rows"} <= read_json(receipt).keys()
    except (UserError, OSError):
        return False


def _is_done(receipt: Path, request: Mapping[str, Any], out: Path, data: Path) -> bool:
    """Return whether a receipt says that the same was asked for, and table and data are those that
    it is of."""
    from mamushi.data.rewriting import table_files
    from mamushi.io.files import read_json, sha256

    try:
        done = read_json(receipt)
        files = {
            name: {path.name: sha256(path) for path in table_files(place)}
            for name, place in (("data", data), ("written", out))
        }
        return all(done[name] == value for name, value in request.items()) and all(
            done[name]["sha256"] in (digests, *digests.values()) for name, digests in files.items()
        )
    except (UserError, OSError, KeyError, TypeError):
        return False


def _receipt(
    listed: ListedTexts, removal: RowRemoval, written: Rewritten, data: str, out: str
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
