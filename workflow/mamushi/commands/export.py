"""Write a removal list, its texts, or a trained model as other tools read them.

A list: mamushi export LIST --to FORMAT --out FILE. The texts come from the table that was ranked,
or from --data. Spans of tokens: mamushi export SPANS --to labels --out FILE. A model, as a folder
that other programs open by itself: mamushi export --model-card CARD --trained TENSORS --out FOLDER.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.commands import _model_folder as model

if TYPE_CHECKING:
    from mamushi.commands._removal_list import RemovalList

GROUP = "act"
FORMATS = {
    "ids": "plain text: an id a line, by rank, each with its copies after it",
    "jsonl": "folder with forget.jsonl and retain.jsonl, as load_dataset and so open-unlearning "
    "read them",
    "labels": "of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token "
    "is masked, as TRL and axolotl read tokenized texts",
    "cut": "of spans: JSON Lines with what is left of the texts, for trainers without labels: the "
    "model does not see what is masked, and nothing of that was measured",
}
README = """\
---
configs:
- config_name: default
  data_files:
  - split: forget
    path: forget.jsonl
  - split: retain
    path: retain.jsonl
---

`forget` is what is on the removal list, `retain` all other texts.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "formats:\n" + "\n".join(f"  {n:<12}{about}" for n, about in FORMATS.items())
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="a removal list")
    parser.add_argument("--to", choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--data", type=Path, help="the table (default: the one that was ranked)")
    parser.add_argument("--id", metavar="COLUMN", help="column with the ids (default: as ranked)")
    parser.add_argument("--text", metavar="COLUMN", help="the text's column (default: as ranked)")
    model.arguments(parser.add_argument_group("a model"), required=False)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for options that do not go together, for a bad list, and for a table
    that is not the list's."""
    from mamushi.artifacts.files import atomic
    from mamushi.commands import _removal_list, _token_labels
    from mamushi.data.rewriting import refuse_existing, whole_folder
    from mamushi.errors import UserError

    if args.out is None:
        raise UserError("nothing says what to write", do="give --out")
    refuse_existing(args.out)
    if args.list is None:
        if args.model_card is None or not args.trained:
            do = "give a LIST and --to, or --model-card and --trained"
            raise UserError("nothing to export", do=do)
        model.run(args)
        return
    if args.to is None:
        raise UserError("nothing says as what", do=f"give --to: {', '.join(FORMATS)}")
    if args.to in ("labels", "cut"):
        _token_labels.write(args.list, args.out, cut=args.to == "cut")
        print(args.out)
        return
    listed = _removal_list.read(args.list)
    if args.to == "jsonl":
        with whole_folder(args.out) as folder:
            _write_splits(folder, _rows(listed, args))
    else:
        with atomic(args.out) as part:
            part.write_text(_ids(listed), encoding="utf-8")
    print(args.out)


def _ids(listed: RemovalList) -> str:
    # Ids hold no line end: whoever reads a list of them splits it there.
    ids = (each for name in listed.ids for each in (name, *listed.copies.get(name, [])))
    return "".join(f"{name}\n" for name in ids)


def _write_splits(folder: Path, rows: Iterator[tuple[str, str, bool]]) -> None:
    with (
        (folder / "forget.jsonl").open("w", encoding="utf-8") as forget,
        (folder / "retain.jsonl").open("w", encoding="utf-8") as retain,
    ):
        for name, text, on_the_list in rows:
            line = json.dumps({"id": name, "text": text}, ensure_ascii=False)
            (forget if on_the_list else retain).write(f"{line}\n")
    # Its header names the splits to `load_dataset`.
    (folder / "README.md").write_text(README, encoding="utf-8")


def _rows(listed: RemovalList, args: argparse.Namespace) -> Iterator[tuple[str, str, bool]]:
    """Iterate over id and text of each row of the given table, of that which was ranked, or of its
    ranked examples where it has another loader, and whether the row is on the list.

    Raises ``UserError`` for a missing column, a text that is not text, and a table in which nothing
    of the list is.
    """
    from mamushi.artifacts.domains import INFERENCE
    from mamushi.data import readers
    from mamushi.data.rewriting import Removal, tables
    from mamushi.errors import UserError

    column = args.text or listed.loader.get("text", "text")
    needed = [column]
    if data := args.data or listed.loader.get("path"):
        data = Path(data)
        removal = Removal(listed.all, listed.column(args.id, data))
    elif listed.examples is None:
        raise UserError("no run lies around it", where=listed.path, do="give --data")
    else:
        data, removal = listed.examples, Removal(listed.all, "id")
        needed.append("section")
    for file in tables(data):
        for place, cells in readers.rows(file, [*needed, *removal.columns]):
            name = cells.get(removal.column or "")
            gone = removal.takes(name)
            if "section" in needed and cells["section"] != INFERENCE:
                continue
            # Null counts as empty.
            if not isinstance(text := cells.get(column) or "", str):
                what = f"column {column!r} is {text!r}, not text"
                raise UserError(what, where=place, do="name the text column with --text")
            yield str(name if removal.column else removal.read), text, gone
    removal.check(data)
