"""A ledger of deletions: a folder with one file per request, each linked to the one before.

An entry is canonical JSON with a digest of each of its fields. ``sha256``, the digest of these, is
what the next entry names as ``previous``. Paths are relative to the folder that holds the ledger,
or absolute outside of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.artifacts import paths
from mamushi.artifacts.files import atomic, read_json, sha256
from mamushi.artifacts.provenance import versions
from mamushi.errors import UserError
from mamushi.evaluation.curves import read_perplexity
from mamushi.evaluation.paired import interval
from mamushi.evaluation.sad import sad
from mamushi.running import locks

Entry = dict[str, Any]
NAMED = ("lists", "manifests", "data", "models")
"""Fields that hold the digests of files, by their paths; ``measured`` has such, too."""
LOCK = "lock"
ENTRY = "[0-9]" * 6 + ".json"


class Difference(NamedTuple):
    """A field of an entry, or a file that it names, that is not as it was written."""

    entry: int
    field: str
    file: Path
    what: str

    def __str__(self) -> str:
        return f"entry {self.entry}, {self.field}: {self.file}: {self.what}"


class State(NamedTuple):
    """The ids that are removed after an entry, and what they are: ``RemovalList.named_by``."""

    ids: set[str]
    named_by: Mapping[str, Any] | None


# The chain ----------------------------------------------------------------------------------------


def sealed(fields: Mapping[str, Any]) -> Entry:
    """Return the entry with these fields and their digests."""
    digests = {name: _digest(value) for name, value in fields.items()}
    return {**fields, "digests": digests, "sha256": _digest(digests)}


def entries(folder: Path) -> list[Path]:
    """Return the files of a ledger, in order."""
    return sorted(folder.glob(ENTRY))


def recorded(folder: Path) -> list[Entry]:
    """Read all entries as ``read``. Raises ``UserError`` also for a folder without entries."""
    if not entries(folder):
        do = "add a request, or name another with --ledger"
        raise UserError("no ledger", where=folder, do=do)
    return read(folder)


def read(folder: Path, last: int | None = None) -> list[Entry]:
    """Read all entries, or those up to number ``last``. Raises ``UserError`` at the first that is
    missing or not as it was written."""
    found: list[Entry] = []
    for number, path in enumerate(_numbered(folder, last), start=1):
        entry, wrong = opened(path, {"entry": number, "previous": _last(found)})
        if entry is None or wrong:
            raise UserError(str(wrong[0]), do="put back a copy of that file")
        found.append(entry)
    return found


def _last(found: Sequence[Entry]) -> str | None:
    return found[-1]["sha256"] if found else None


def _numbered(folder: Path, last: int | None = None) -> list[Path]:
    """Return the files from the first entry to the last, with those missing between."""
    if last is None:
        last = max((int(path.stem) for path in entries(folder)), default=0)
    return [folder / f"{number:06}.json" for number in range(1, last + 1)]


def opened(path: Path, links: Mapping[str, Any]) -> tuple[Entry | None, list[Difference]]:
    """Read what still holds of an entry, None where nothing can be trusted, and what does not.

    ``links`` are the fields that follow from the entries before it, and their values.
    """

    def differs(field: str, what: str) -> Difference:
        return Difference(int(path.stem), field, path, what)

    try:
        entry = json.loads(written := path.read_bytes())
    except FileNotFoundError:
        return None, [differs("whole", "no such file")]
    except ValueError as error:
        return None, [differs("whole", f"not valid JSON ({error})")]
    digests = entry.pop("digests", None) if isinstance(entry, dict) else None
    own = _digest(digests)
    if not isinstance(digests, dict) or entry.pop("sha256", None) != own:
        return None, [differs("sha256", "is not the digest of its digests")]
    whole = {**entry, "digests": digests, "sha256": own}
    names = sorted({*entry, *digests})
    wrong = [n for n in names if n not in entry or _digest(entry[n]) != digests.get(n)]
    found = [differs(name, "is not what its digest says") for name in wrong]
    if not found and _written(whole) != written:
        found.append(differs("whole", "is not written as it was"))
    kept = {name: value for name, value in whole.items() if name not in wrong}
    found += [
        differs(name, f"is {kept[name]!r} in place of {wanted!r}")
        for name, wanted in links.items()
        if name in kept and kept[name] != wanted
    ]
    return kept, found


def append(folder: Path, content: Mapping[str, Any], ids: Sequence[str]) -> tuple[Entry, bool]:
    """Add a request that removes ``ids`` to a ledger; the entry, and False where the request was
    recorded before. Raises ``UserError`` for a damaged ledger, ids of another kind, and without
    locks."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = locks.acquire(folder / LOCK, "ledger add", f"which adds to {folder}")
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            raise
        do = "keep the ledger on another file system"
        raise UserError("its file system has no locks", where=folder, do=do) from None
    with lock:
        before = read(folder)
        for entry in before:
            if all(entry[name] == value for name, value in content.items()):
                return entry, False
        state = after(before)
        same_names(content["named_by"], state.named_by, folder)
        links = {"entry": len(before) + 1, "previous": _last(before)}
        made = {"removed": split(ids, state.ids), "versions": versions()}
        entry = sealed({**content, **links, **made})
        with atomic(folder / f"{links['entry']:06}.json") as part:
            part.write_bytes(_written(entry))
    return entry, True


def split(ids: Iterable[str], gone: set[str]) -> dict[str, list[str]]:
    """Split ``ids`` into those that are new and those that were removed before."""
    return {"new": sorted({*ids} - gone), "again": sorted({*ids} & gone)}


def after(found: Iterable[Entry]) -> State:
    """Return what is removed after these entries, which begin with the first."""
    found = list(found)
    named_by = next((entry["named_by"] for entry in found if entry["named_by"]), None)
    return State({name for entry in found for name in entry["removed"]["new"]}, named_by)


def state_at(path: Path) -> State:
    """Return what is removed after the entry in this file. Raises ``UserError`` as ``read``."""
    if not path.match(ENTRY):
        do = "give the list itself, or an entry of a ledger, as 000001.json"
        raise UserError("is no entry of a ledger", where=path, do=do)
    return after(read(path.parent, int(path.stem)))


def same_names(own: Any, others: Any, where: Path) -> None:
    """Raise ``UserError`` where the same id would mean two texts."""
    if own and others and own != others:
        what = (
            "its ids are not those of the request: they name texts in another way or, as numbers "
            "of rows, in other files"
        )
        do = "keep a ledger per training set, and give its texts ids in a column"
        raise UserError(what, where=where, do=do)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _written(entry: Entry) -> bytes:
    return (json.dumps(entry, indent=1, sort_keys=True) + "\n").encode()


# What an entry names ------------------------------------------------------------------------------


def base(folder: Path) -> Path:
    """Return the folder from which an entry's paths go out."""
    return Path(os.path.abspath(folder)).parent


def digests_of(files: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return SHA-256 of these files, and of all in these folders, by their paths in an entry."""
    whole = [
        file
        for path in files
        for file in (filter(Path.is_file, path.rglob("*")) if path.is_dir() else [path])
    ]
    return {name: sha256(path) for name, path in sorted((spelled(p, folder), p) for p in whole)}


def spelled(path: Path, folder: Path) -> str:
    """Return the path of a file, as an entry has it."""
    whole, start = Path(os.path.abspath(path)), base(folder)
    return (whole.relative_to(start) if whole.is_relative_to(start) else whole).as_posix()


def made_with(listed: Path, results: Path) -> list[tuple[list[Path], Path]]:
    """Return the files of each model in ``results`` that was made with this very list, and its
    perplexity table, which may be missing."""
    digest = sha256(listed)
    everywhere = dict.fromkeys(("dataset", "model", "seed"), "*")
    cards = sorted(results.glob(paths.under("", paths.CARD, **everywhere, arm="**").as_posix()))
    found = []
    for card in cards:
        if read_json(card).get("inputs", {}).get("removal") == digest:
            where = paths.wildcards(paths.CARD, card) or {}
            tensors, perplexity = (
                paths.under(pattern=each, **where) for each in (paths.TRAINED, paths.PERPLEXITY)
            )
            found.append(([path for path in (card, tensors) if path.is_file()], perplexity))
    return found


def measured(perplexity: Path, folder: Path) -> dict[str, Any]:
    """Return a model's ``numbers_of``, with the tables that they are from: its own and those of
    other seeds, each with gold's of its cell, as far as there are any."""
    where = _place(perplexity)
    sought = paths.under(pattern=paths.PERPLEXITY, **{**where, "root": "", "seed": "*"})
    own = sorted(Path(where["root"]).glob(sought.as_posix()))
    gold = [_gold(_place(path)) for path in own]
    tables = [path for path in (*own, *gold) if path.is_file()]
    return {
        "perplexity": spelled(perplexity, folder),
        "tables": digests_of(tables, folder),
        "numbers": numbers_of(perplexity, tables),
    }


def numbers_of(perplexity: Path, tables: Sequence[Path]) -> dict[str, Any]:
    """Return perplexities and SAD of a model, from ``tables_of`` it: each number with the mean over
    the seeds that have it, and its 95% t interval, which is null for one seed."""
    own = _place(perplexity)
    found: dict[str, list[float]] = {}
    read = {str(path): read_perplexity(path) for path in tables}
    # Its own seed comes first.
    cells = [where for path in tables if (where := _place(path))["arm"] == own["arm"]]
    for where in sorted(cells, key=lambda cell: (cell["seed"] != own["seed"], cell["seed"])):
        model = read[str(paths.under(pattern=paths.PERPLEXITY, **where))]
        numbers = {"ppl_forget": model.ppl_forget, "ppl_retain": model.ppl_retain}
        if (of := read.get(str(_gold(where)))) is not None:
            both = {"gold_ppl_forget": of.ppl_forget, "gold_ppl_retain": of.ppl_retain}
            numbers |= {**both, "sad": float(sad(*numbers.values(), *both.values()))}
        # Numbers that its own seed lacks are left out.
        for name in numbers if where == own else found:
            found.setdefault(name, []).extend([numbers[name]] if name in numbers else [])
    return {name: _over_seeds(values) for name, values in found.items()}


def _place(perplexity: Path) -> dict[str, str]:
    """Return the wildcards of a model's perplexity table, and its results folder as ``root``."""
    where = paths.wildcards(paths.PERPLEXITY, perplexity)
    assert where is not None
    return where


def _gold(where: Mapping[str, str]) -> Path:
    """Return the perplexity table of gold in a model's cell."""
    return paths.under(pattern=paths.PERPLEXITY, **{**where, "arm": "gold"})


def _over_seeds(values: Sequence[float]) -> dict[str, Any]:
    low, high = (None if math.isnan(end) else end for end in interval(values))
    mean = math.fsum(values) / len(values)
    return {"value": values[0], "mean": mean, "low": low, "high": high, "seeds": len(values)}


# Verification -------------------------------------------------------------------------------------


def differences(
    folder: Path, listed: Callable[[list[Path]], tuple[list[str], Any]]
) -> Iterator[Difference]:
    """Yield all that is not as it was written; ``listed`` gives the ids of lists, and what they
    are."""
    links: dict[str, Any] = {"previous": None}
    gone: set[str] | None = set()
    for number, path in enumerate(_numbered(folder), start=1):
        entry, found = opened(path, {"entry": number, **links})
        yield from found
        if entry is None:
            # What the next one has to name, and what was gone before it, is not known.
            links, gone = {}, None
            continue
        links = {"previous": entry["sha256"]}
        changed = list(_changed(number, entry, folder))
        yield from changed
        untouched = entry.keys() >= {*NAMED, "removed", "named_by"} and not any(
            each.field in ("lists", "manifests", "data") for each in changed
        )
        if untouched and gone is not None:
            ids, named_by = listed([base(folder) / name for name in entry["lists"]])
            wanted = {"removed": split(ids, gone), "named_by": named_by}
            yield from (
                Difference(number, name, path, "is not what its lists and the entries before say")
                for name, value in wanted.items()
                if entry[name] != value
            )
        gone = gone | {*entry["removed"]["new"]} if gone is not None and untouched else None


def _changed(number: int, entry: Entry, folder: Path) -> Iterator[Difference]:
    """Yield files that are missing or others now, and numbers that do not follow from theirs."""
    for name in NAMED:
        yield from _others(number, name, entry.get(name, {}), folder)
    for each in entry.get("measured", []):
        others = list(_others(number, "measured", each["tables"], folder))
        yield from others
        if others:
            continue
        table = base(folder) / each["perplexity"]
        again = numbers_of(table, [base(folder) / name for name in each["tables"]])
        yield from (
            Difference(number, "measured", table, f"{name} is {then}, measured again {again[name]}")
            for name, then in each["numbers"].items()
            if not _alike(then, again.get(name, {}))
        )


def _others(
    number: int, field: str, files: Mapping[str, str], folder: Path
) -> Iterator[Difference]:
    for name, digest in files.items():
        path = base(folder) / name
        try:
            what = None if sha256(path) == digest else f"has another content than {digest[:12]}"
        except UserError as error:
            what = error.what
        if what:
            yield Difference(number, field, path, what)


def _alike(then: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Compare up to the last digits, in which versions of SciPy may differ."""
    return then.keys() == again.keys() and all(
        then[name] == again[name]
        if then[name] is None or again[name] is None
        else math.isclose(then[name], again[name], rel_tol=1e-9)
        for name in then
    )
