"""Remove the texts of a list, or its windows, from a table: all else stays byte for byte.

LIST is a removal list of a run, results/runs/.../removals/SELECTOR/betaB.parquet, also away from
it, or ids of your own: a text file with one a line, or a table with a column `id`. Texts have to be
those that were ranked. The result has the format of the data; a zip is unpacked. FILE.receipt.json
says what was done, with digests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from mamushi.errors import UserError
from mamushi.io.digests import versions
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.tabular import find
from mamushi_curate.commands import _options
from mamushi_extras.remote.urls import display_url, is_remote

if TYPE_CHECKING:
    from mamushi_curate.removal import Removal

ROW_NUMBERS = "the number of the row, from 1"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(_options.Cells):
    """Which rows go, by their ids and texts."""

    id: str | None = None
    """Column with the ids, else the ranked dataset's; of a list of your own `id`."""
    rows: bool = False
    """The ids are numbers of rows, from 1, in the order of the files."""
    text: str | None = None
    """Column with the texts, which are compared with those that were ranked; else as ranked."""
    changed_texts: bool = False
    """Go by the ids also where the texts are others now, or cannot be compared."""
    missing_ids: bool = False
    """Go on where the table lacks some of the listed ids."""


def run(list: Path, /, *, data: str, out: Path, options: Options = Options()) -> tuple[int, Any]:
    """Write the table and its receipt: the receipt first, so that no table is without one.

    :param list: What to remove.
    :param data: The table, a file or a folder, here or at a URL.
    :param out: What to write.
    """
    from mamushi_curate.removal import read_removal
    from mamushi_curate.rewriting import refuse_existing, rewrite

    _options.check_one(required=False, id=options.id, rows=options.rows)
    table = _options.fetch(data)[1] if is_remote(data) else Path(data)
    removal = read_removal(list).with_options(options, table)
    receipt = out.with_name(f"{out.name}.receipt.json")
    files = {"list": list, "data": table, "written": out}
    if _is_done(receipt, files, removal.column or ROW_NUMBERS):
        print(f"{out}: there already, by the same command")
        return 0, read_json(receipt)
    refuse_existing(out)
    done: dict[str, Any] = {}

    def note(read: dict[str, str], written: dict[str, str]) -> None:
        # Another command may have written there meanwhile.
        refuse_existing(out)
        done.update(_receipt(removal))
        for name, path, sums in (("data", display_url(data), read), ("written", str(out), written)):
            of_file = next(iter(sums.values()))
            done[name] = {"path": path, "sha256": sums if table.is_dir() else of_file}
        write_json(receipt, done)

    try:
        rewrite(table, out, removal, note)
    except BaseException:
        if done:
            receipt.unlink(missing_ok=True)
        raise
    ids = done["ids"]
    how, counts = f"{ids['copies_found']:,} of them as copies", removal.counts
    how = "nothing of them is left" if removal.cuts_windows else how
    print(f"{counts.removed_rows:,} of {counts.read_rows:,} rows removed, {how}")
    if removal.cuts_windows:
        print(f"{counts.cut_characters:,} characters cut from {counts.cut_rows:,} rows")
    if ids["not_found"]:
        print(f"{len(ids['not_found']):,} ids of the list are not there, see the receipt")
    if removal.source and not counts.compared:
        print("their texts were not compared with those that were ranked")
    print(out)
    return 0, done


def _is_done(receipt: Path, files: Mapping[str, Path], column: str) -> bool:
    """Tell by its receipt whether the table is there: of the same list, ids and data."""
    with contextlib.suppress(UserError, OSError, LookupError):
        done = read_json(receipt)
        is_same = all(done[name]["sha256"] == _digests(file) for name, file in files.items())
        return is_same and done["id"] == column
    return False


def _digests(path: Path) -> str | dict[str, str]:
    """Return the SHA-256 of a file, or by name those of a folder's files."""
    if path.is_dir():
        return {str(file.relative_to(path)): sha256(file) for file in find(path)}
    return sha256(path)


def _receipt(removal: Removal) -> dict[str, Any]:
    """Return the record of a removal: the list that was applied, and the counts of rows."""
    names = ("dataset", "model", "seed", "selector", "beta")
    counts = removal.counts
    read, removed = counts.read_rows, counts.removed_rows
    cut = {"rows": counts.cut_rows, "characters": counts.cut_characters}
    return {
        "list": {"path": str(removal.path), "sha256": sha256(removal.path)},
        "of": {name: (removal.manifest or {}).get(name) for name in names},
        "id": removal.column or ROW_NUMBERS,
        "versions": versions(),
        "rows": {"read": read, "on_the_list": removed, "others": read - removed},
        **({"cut": cut} if removal.cuts_windows else {}),
        "texts": {"compared": counts.compared, "changed": counts.changed},
        "ids": removal.count_ids(),
    }
