"""A table written again without some of its rows, or without parts of its texts; all else stays.

A file is read as records; of each the list says what becomes of it; the records that stay are
written, and read again. One row, or one row group, is in memory at a time.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.io.files import atomic, new_part, read_plain_json
from mamushi_curate.removal import Removal
from mamushi_curate.rewriting_columns import write_columns
from mamushi_curate.rewriting_lines import write_lines
from mamushi_curate.tables.lines import open_binary
from mamushi_curate.tables.readers import COLUMNAR, read_records

Digests = dict[str, str]
INFO = "dataset_info.json"
"""Beside ``tabular.STATE`` in a folder that ``datasets`` saved."""


def refuse_existing(out: Path) -> None:
    """Raise ``UserError`` where something stands already, which may be the user's own."""
    if os.path.lexists(out):
        raise UserError("exists already", where=out, do="name another one in --out")


def rewrite(
    data: Path,
    out: Path,
    removal: Removal,
    note: Callable[[Digests, Digests], None] = lambda read, written: None,
) -> None:
    """Write ``data``, a file or a folder, to ``out`` without what ``removal`` takes, whole or not
    at all. ``note`` is called before the result gets its name, with the SHA-256, by name, of the
    files that were read and of those written. Raises ``UserError`` also for a file that is written
    meanwhile, ``RuntimeError`` where other bytes were written than stay."""
    files, is_folder = tabular.find(data), data.is_dir()
    refuse_existing(out)
    if is_folder and out.resolve().is_relative_to(data.resolve()):
        raise UserError("lies in the folder of the data", where=out, do="name another place")
    written_as = Path(tabular.written_name(data))
    forms = [(tabular.format_of(path), tabular.packing_of(path)) for path in (written_as, out)]
    if not is_folder and forms[0] != forms[1]:
        problem = f"the endings of {data.name} and {out.name} differ"
        raise UserError(problem, where=out, do=f"name it as in {written_as}")
    read, written = dict[str, str](), dict[str, str]()
    with new_folder(out) if is_folder else atomic(out) as unfinished:
        for path in files:
            name, to = out.name, unfinished
            if is_folder:
                name = str(path.relative_to(data).with_name(tabular.written_name(path)))
                to = unfinished / name
                to.parent.mkdir(parents=True, exist_ok=True)
            if name in written:
                do = "unpack it, or give one file, or a folder"
                raise UserError("would be written over another file", where=path, do=do)
            with open_binary(path, read) as file:
                dialect = removal.dialect.at(path)
                records = read_records(path, file, removal.columns, dialect, strict=False)
                verdicts = removal.judge(records)
                if tabular.format_of(path) in COLUMNAR:
                    written[name] = write_columns(path, file, verdicts, to, removal.columns)
                else:
                    written[name] = write_lines(path, verdicts, to, dialect)
        removal.check(data)
        if is_folder:
            # What lies beside the files of a table, but for the caches of `datasets`.
            shutil.copytree(data, unfinished, symlinks=True, ignore=_ignored, dirs_exist_ok=True)
            if (data / tabular.STATE).is_file():
                _update_state(unfinished, written)
            if tabular.find(data) != files:
                raise UserError("has changed while it was read", where=data)
        names = [str(path.relative_to(data)) if is_folder else path.name for path in files]
        note(dict(zip(names, read.values(), strict=True)), written)


def _ignored(folder: str, names: list[str]) -> list[str]:
    """Return the files of a folder not to copy: hidden ones, and parts of its table."""
    return [name for name in names if name[0] in "._" or tabular.is_part(Path(folder, name))]


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Open a folder beside ``path`` that becomes it when the block succeeds. The next writer of
    ``path`` removes what a killed process left."""
    unfinished = new_part(path, Path.mkdir)
    try:
        yield unfinished
        for file in unfinished.rglob("*"):
            if file.is_file() and not file.is_symlink():
                with file.open("rb+") as handle:
                    os.fsync(handle.fileno())
        refuse_existing(path)
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _update_state(folder: Path, written: Mapping[str, str]) -> None:
    """Give a folder that ``datasets`` opens a name of its content for its caches, and no counts of
    rows that have gone."""
    for name, key in ((tabular.STATE, "_fingerprint"), (INFO, "splits")):
        about = read_plain_json(folder / name)
        digest = hashlib.sha256("".join([str(about.get(key)), *written.values()]).encode())
        about[key] = digest.hexdigest()[:16] if name == tabular.STATE else None
        (folder / name).write_text(json.dumps(about, indent=2), encoding="utf-8")
