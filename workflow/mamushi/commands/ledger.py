"""Keep a ledger of deletions: what was removed at which request, with which models and distances.

`add` records a request: its lists, the data (--data), the models that were made with them (those of
the workflow, and --model), and how far these are from gold, all with digests. `show` says what was
recorded; `verify` says what is no longer as it was, with the exit code 2. An entry is itself a
list, of all that is removed up to it: mamushi apply ledger/000003.json --data TABLE --out FILE.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.commands._removal_list import RemovalList

GROUP = "act"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(metavar="add | show | verify", required=True)
    for does, about in (
        (add, "record a request"),
        (show, "say what was recorded"),
        (verify, "compute digests, ids and distances again, and say what differs"),
    ):
        each = commands.add_parser(does.__name__, help=about, description=about)
        each.set_defaults(does=does)
        if does is add:
            each.add_argument("lists", nargs="+", type=Path, metavar="LIST", help="what is removed")
            models = "models made without it, files or folders, beside those of the workflow"
            for option, about in (("data", "the tables it is removed from"), ("model", models)):
                each.add_argument(f"--{option}", nargs="+", type=Path, default=[], help=about)
        folder = "its folder (default: %(default)s)"
        each.add_argument("--ledger", type=Path, default=Path("ledger"), help=folder)


def run(args: argparse.Namespace) -> int:
    """Return the exit code. Raises ``UserError`` as ``evidence.ledger`` and for a bad list."""
    status: int = args.does(args)
    return status


def add(args: argparse.Namespace) -> int:
    """Record a request."""
    from mamushi.artifacts import paths
    from mamushi.commands import _removal_list
    from mamushi.data.rewriting import tables
    from mamushi.evidence import ledger

    folder: Path = args.ledger
    files: dict[str, list[Path]] = {
        "lists": args.lists,
        "manifests": [],
        "data": [table for data in args.data for table in tables(data)],
        "models": args.model,
    }
    measured = []
    read = [_removal_list.read(path, earlier=True) for path in args.lists]
    for listed in read:
        results = ledger.base(folder) / paths.RESULTS
        if where := paths.wildcards(paths.REMOVAL, listed.path.absolute()):
            results = Path(where["root"])
            for pattern in (paths.DATA_CARD, paths.DUPLICATES, paths.EXAMPLES):
                if (path := paths.under(pattern=pattern, **where)).is_file():
                    files["data"] = [*files["data"], path]
        if listed.manifest:
            files["manifests"].append(listed.path.with_suffix(".json"))
        for made, perplexity in ledger.made_with(listed.path, results):
            files["models"] = [*files["models"], *made]
            if perplexity.is_file():
                measured.append(ledger.measured(perplexity, folder))
    named = {name: ledger.digests_of(paths, folder) for name, paths in files.items()}
    ids, named_by = _ids(read)
    content = {**named, "measured": measured, "named_by": named_by}
    entry, new = ledger.append(folder, content, ids)
    print(_described(entry))
    print("recorded" if new else "this request was recorded before")
    return 0


def show(args: argparse.Namespace) -> int:
    """Say what was recorded."""
    from mamushi.evidence import ledger

    for entry in (found := ledger.recorded(args.ledger)):
        print(_described(entry))
    ids = len(ledger.after(found).ids)
    print(f"{ids:,} ids are removed; the last digest is {found[-1]['sha256']}")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Say what is no longer as it was: 2 where something is not."""
    from mamushi.commands import _removal_list
    from mamushi.errors import UserError
    from mamushi.evidence import ledger

    def again(lists: Sequence[Path]) -> tuple[list[str], Mapping[str, Any] | None]:
        return _ids([_removal_list.read(path, earlier=True) for path in lists])

    if differences := list(ledger.differences(args.ledger, again)):
        print("\n".join(map(str, differences)))
        do = "put back copies of these files"
        raise UserError(f"{len(differences)} differences", where=args.ledger, do=do)
    found = ledger.recorded(args.ledger)
    last = found[-1]["sha256"]
    print(f"{len(found)} entries are what they were; the last digest is {last}")
    return 0


def _ids(lists: Sequence[RemovalList]) -> tuple[list[str], Mapping[str, Any] | None]:
    """Return what lists remove, with the copies, and what these ids are.

    Raises ``UserError`` where they are not of one kind.
    """
    from mamushi.evidence.ledger import same_names

    named_by = None
    for listed in lists:
        same_names(listed.named_by, named_by, listed.path)
        named_by = named_by or listed.named_by
    return sorted({name for listed in lists for name in listed.all}), named_by


def _described(entry: Mapping[str, Any]) -> str:
    removed = entry["removed"]
    again = f", {len(removed['again']):,} removed before" if removed["again"] else ""
    lines = [f"entry {entry['entry']}: {len(removed['new']):,} ids removed{again}"]
    for name in ("lists", "data", "models"):
        lines += [f"  {name:<9}{path}" for path in entry[name]]
    for each in entry["measured"]:
        lines.append(f"  measured {each['perplexity']}")
        for name, number in sorted(each["numbers"].items()):
            spread = "one seed, whose error is unknown"
            if number["low"] is not None:
                mean, low, high = (f"{number[n]:.3f}" for n in ("mean", "low", "high"))
                spread = f"mean over {number['seeds']} seeds {mean} [{low}, {high}]"
            lines.append(f"    {name:<16}{number['value']:>10.3f}   {spread}")
    return "\n".join([*lines, f"  sha256   {entry['sha256']}"])
