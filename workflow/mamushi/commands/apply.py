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
    parser.add_argument("--out", required=True, metavar="FILE", help="what to write")
    _row_options.arguments(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the table and its receipt: the receipt first, so that no table is without one. What
    goes to a URL is written here, and stays until all of it is there.

    Raises ``UserError`` as ``_removal_list.read_list``, ``rewriting.rewrite`` and, of URLs,
    ``remote.fetch_copy`` and ``remote.upload``.
    """
    from mamushi.commands import _removal_list
    from mamushi.data import remote
    from mamushi.data.rewriting import refuse_existing

    copy, url = _places.fetched_place(args, "data"), str(args.out)
    data, shown = display_url(str(args.data)), display_url(url)
    args.data = copy if is_remote(args.data) else Path(args.data)
    args.out = remote.outgoing(url) if is_remote(url) else Path(url)
    if not args.out.name:
        refuse_existing(args.out)
    listed = _removal_list.read_list(args.list)
    removal = listed.removal(args, args.data)
    request = _request(args, listed, removal)
    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    sent = is_remote(url) and not args.out.exists() and _is_sent(url, receipt)
    done = _written(args, (data, shown), listed, removal, request, sent)
    if is_remote(url) and not sent:
        _send(args.out, receipt, url)
    if args.json:
        _as_json.put(done)
    elif not removal.read:
        print(f"{shown}: there already, by the same command")
    else:
        _say(shown, listed, removal, done["ids"])


def _written(
    args: argparse.Namespace,
    places: tuple[str, str],
    listed: ListedTexts,
    removal: RowRemoval,
    request: Mapping[str, Any],
    sent: bool,
) -> dict[str, Any]:
    """Write the table, unless that was done before and, if it was ``sent``, is not here any more.
    Return its receipt, in which data and result have their ``places``."""
    from mamushi.data.rewriting import refuse_existing, rewrite
    from mamushi.io.files import read_json, write_json

    receipt = args.out.with_name(f"{args.out.name}.receipt.json")
    if _is_done(receipt, request, None if sent else args.out, args.data):
        return read_json(receipt)
    if sent:
        receipt.unlink(missing_ok=True)
        raise UserError("exists already", where=places[1], do="name another one in --out")
    refuse_existing(args.out)
    if not _is_ours(receipt):
        refuse_existing(receipt)
    done: dict[str, Any] = {}

    def record(written: Rewritten) -> None:
        # Another command may have written there meanwhile.
        refuse_existing(args.out)
        done.update({**request, **_receipt(listed, removal, written, *places)})
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


def _is_sent(url: str, receipt: Path) -> bool:
    """Return whether something is at a URL, whose receipt, if it has one, then is here."""
    from mamushi.data import remote
    from mamushi.io.files import write_text

    if is_taken := remote.exists_at(url):
        write_text(receipt, remote.text_at(f"{url}.receipt.json") or "")
    return is_taken


def _send(out: Path, receipt: Path, url: str) -> None:
    """Send a table after its receipt, and take both away here. Raises ``UserError`` where another
    one is."""
    import shutil

    from mamushi.data import remote

    sent_text = remote.text_at(f"{url}.receipt.json")
    if sent_text != receipt.read_text(encoding="utf-8") and (sent_text or remote.exists_at(url)):
        do = "name another one in --out"
        raise UserError("exists already", where=display_url(url), do=do)
    remote.upload(receipt, f"{url}.receipt.json")
    remote.upload(out, url)
    shutil.rmtree(out.parent)


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


def _is_done(receipt: Path, request: Mapping[str, Any], out: Path | None, data: Path) -> bool:
    """Return whether a receipt says that the same was asked for, and table and data are those that
    it is of; without a table, the data alone."""
    from mamushi.data.rewriting import table_files
    from mamushi.io.files import read_json, sha256

    try:
        done = read_json(receipt)
        files = {
            "data": {path.name: sha256(path) for path in table_files(data)},
        }
        if out is not None:
            files["written"] = {path.name: sha256(path) for path in table_files(out)}
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
