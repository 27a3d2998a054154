"""Write a removal list, its texts, or a trained model as other tools read them.

A list: mamushi export LIST --to FORMAT --out FILE. The texts come from the table that was ranked,
or from --data. A model, as a folder that other programs open by itself: mamushi export --model-card
CARD --trained TENSORS --out FOLDER; see mamushi stage export.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.stages import export as model

if TYPE_CHECKING:
    from mamushi.commands._source import Source

GROUP = "act"
FORMATS = Path(__file__).parent / "formats"


def formats() -> dict[str, str]:
    """Return what a list can be written as, with its help; the files are read, not imported."""
    found = {}
    for path in sorted(FORMATS.glob("[!_]*.py")):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem.replace("_", "-")] = about.partition("\n")[0]
    return found


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    known = formats()
    parser.epilog = "formats:\n" + "\n".join(f"  {n:<12}{about}" for n, about in known.items())
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="a removal list")
    parser.add_argument("--to", choices=known, metavar="FORMAT", help=", ".join(known))
    parser.add_argument("--data", type=Path, help="the table (default: the one that was ranked)")
    parser.add_argument("--id", metavar="COLUMN", help="column with the ids (default: as ranked)")
    parser.add_argument("--text", metavar="COLUMN", help="the text's column (default: as ranked)")
    parser.add_argument("--prompt", metavar="COLUMN", help="column with what the text answers")
    parser.add_argument(
        "--weights",
        action="store_true",
        help="for a trainer: all rows, with a `weight` of 0 for what is on the list, else 1",
    )
    model.arguments(parser.add_argument_group("a model"), required=False)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for options that do not go together, for a bad list, and as the format
    does."""
    import importlib

    from mamushi.artifacts.files import atomic
    from mamushi.commands import _removal_list
    from mamushi.commands._source import Source
    from mamushi.data.rewriting import whole_folder
    from mamushi.errors import UserError

    if args.out is None:
        raise UserError("nothing says what to write", do="give --out")
    if args.list is None:
        if args.model_card is None or not args.trained:
            do = "give a LIST and --to, or --model-card and --trained"
            raise UserError("nothing to export", do=do)
        model.run(args)
        return
    if args.to is None:
        raise UserError("nothing says as what", do=f"give --to: {', '.join(formats())}")
    module = importlib.import_module(f"mamushi.commands.formats.{args.to.replace('-', '_')}")
    source = Source(_removal_list.read(args.list), weights=args.weights)
    if module.TEXTS:
        source = _with_table(source, args)
    if module.FOLDER and args.out.exists():
        raise UserError("exists already", where=args.out, do="remove it or name another one")
    with whole_folder(args.out) if module.FOLDER else atomic(args.out) as part:
        module.write(source, part)
    print(args.out)


def _with_table(source: Source, args: argparse.Namespace) -> Source:
    """Add the given table, that which was ranked, or its examples where it has another loader."""
    from dataclasses import replace

    from mamushi.errors import UserError

    listed = source.listed
    text = args.text or listed.loader.get("text", "text")
    columns = {"text": text} | ({"prompt": args.prompt} if args.prompt else {})
    data = args.data or listed.loader.get("path")
    if data is not None:
        data = Path(data)
        return replace(source, data=data, columns=columns, id=listed.column(args.id, data))
    if listed.examples is None:
        raise UserError("no run lies around it", where=listed.path, do="give --data")
    return replace(source, data=listed.examples, columns=columns, id="id", inference=True)
