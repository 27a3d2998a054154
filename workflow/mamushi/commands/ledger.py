"""Keep a ledger of deletions: what was removed at which request, with which models and distances.

`add` records a request: its lists, the data (--data), the models that were made with them (those of
the workflow, and --model), and how far these are from gold, all with digests. `show` says what was
recorded; `verify` says what is no longer as it was, with the exit code 2. An entry is itself a
list, of all that is removed up to it: mamushi apply ledger/000003.json --data TABLE --out FILE.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.commands._listed import Listed

GROUP = "act"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
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
            each.add_argument(
                "--data", nargs="+", type=Path, default=[], help="the tables it is removed from"
            )
            each.add_argument(
                "--model",
                nargs="+",
                type=Path,
                default=[],
                help="models made without it, files or folders, beside those of the workflow",
            )
        each.add_argument(
            "--ledger", type=Path, default=Path("ledger"), help="its folder (default: %(default)s)"
        )


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises ``UserError`` as the functions of ``evidence.ledger`` and as
    ``_listed.read``."""
    status: int = args.does(args)
    return status


def add(args: argparse.Namespace) -> int:
    """Record a request."""
    from mamushi.artifacts import paths
    from mamushi.commands import _listed
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
    chosen = [_listed.read(path) for path in args.lists]
    for listed in chosen:
        results = ledger.base(folder) / paths.RESULTS
        if where := paths.wildcards(paths.REMOVAL, listed.path.absolute()):
            results = Path(where["root"])
            of = (paths.DATA_CARD, paths.DUPLICATES, paths.EXAMPLES)
            ours = [paths.under(pattern=pattern, **where) for pattern in of]
            files["data"] = [*files["data"], *(path for path in ours if path.is_file())]
        if listed.manifest:
            files["manifests"].append(listed.path.with_suffix(".json"))
        for made, perplexity in ledger.made_with(listed.path, results):
            files["models"] = [*files["models"], *made]
            if perplexity.is_file():
                measured.append(ledger.measured(perplexity, folder))
    named = {name: ledger.digests_of(paths, folder) for name, paths in files.items()}
    ids, named_by = _ids(chosen)
    content = {**named, "measured": measured, "named_by": named_by}
    entry, new = ledger.append(folder, content, ids)
    print("\n".join(_told(entry)))
    print("recorded" if new else "this request was recorded before")
    return 0


def show(args: argparse.Namespace) -> int:
    """Say what was recorded."""
    from mamushi.evidence import ledger

    for entry in (found := ledger.recorded(args.ledger)):
        print("\n".join(_told(entry)))
    print(f"{len(ledger.after(found).ids):,} ids are removed; the last digest is {_last(found)}")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Say what is no longer as it was: 2 where something is not."""
    from mamushi.commands import _listed
    from mamushi.errors import UserError
    from mamushi.evidence import ledger

    def again(lists: Sequence[Path]) -> tuple[list[str], Mapping[str, Any] | None]:
        return _ids([_listed.read(path) for path in lists])

    if differences := list(ledger.differences(args.ledger, again)):
        print("\n".join(map(str, differences)))
        do = "put back copies of these files"
        raise UserError(f"{len(differences)} differences", where=args.ledger, do=do)
    found = ledger.recorded(args.ledger)
    print(f"{len(found)} entries are what they were; the last digest is {_last(found)}")
    return 0


def _last(found: Sequence[Mapping[str, Any]]) -> str:
    return str(found[-1]["sha256"])


def _ids(chosen: Sequence[Listed]) -> tuple[list[str], Mapping[str, Any] | None]:
    """What lists remove, with the copies, and what these ids are.

    Raises ``UserError`` where they are not of one kind.
    """
    from mamushi.evidence.ledger import same_names

    named_by = None
    for listed in chosen:
        same_names(listed.named_by, named_by, listed.path)
        named_by = named_by or listed.named_by
    return sorted({name for listed in chosen for name in listed.all}), named_by


def _told(entry: Mapping[str, Any]) -> Iterator[str]:
    removed, measured = entry["removed"], entry["measured"]
    again = f", {len(removed['again']):,} removed before" if removed["again"] else ""
    yield f"entry {entry['entry']}: {len(removed['new']):,} ids removed{again}"
    for name in ("lists", "data", "models"):
        yield from (f"  {name:<9}{path}" for path in entry[name])
    for each in measured:
        yield f"  measured {each['perplexity']}"
        for name, number in sorted(each["numbers"].items()):
            spread = "one seed, whose error is unknown"
            if number["low"] is not None:
                spread = (
                    f"mean over {number['seeds']} seeds {number['mean']:.3f} "
                    f"[{number['low']:.3f}, {number['high']:.3f}]"
                )
            yield f"    {name:<16}{number['value']:>10.3f}   {spread}"
    yield f"  sha256   {entry['sha256']}"
