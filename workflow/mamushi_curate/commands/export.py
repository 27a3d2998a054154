"""Write a removal list, its texts, or a trained model as other tools read them.

A list, or spans of tokens: mamushi export LIST --to FORMAT --out FILE. A model, as a folder that
other programs open: mamushi export --model-card CARD --trained TENSORS --out FOLDER. It is the base
with trained tensors laid over it, in order; an unlearned model is its base, the tensors that it
started from (embedding, head and blocks), and those that unlearning trained (blocks).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mamushi.errors import UserError
from mamushi.io.digests import versions
from mamushi.io.domains import INFERENCE
from mamushi.io.files import sha256, trained_metadata, write_json, write_text
from mamushi.registry import plugin, plugins

if TYPE_CHECKING:
    from mamushi_curate.removal import Removal

FORMATS = {
    "ids": "plain text: an id a line, by rank, each with its copies after it",
    "jsonl": "folder with forget.jsonl and retain.jsonl, as load_dataset reads them",
    **{name: kind.summary for name, kind in plugins("format").items()},
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


FORMATS_HELP = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())


def run(
    list: Path | None = None,
    /,
    *,
    to: Annotated[str | None, Parameter(choices=FORMATS, help=FORMATS_HELP)] = None,
    out: Path,
    model_card: Path | None = None,
    trained: Sequence[Path] = (),
) -> tuple[int, Any]:
    """Write what was asked for. Raises ``UserError`` for options that do not go together.

    :param list: A removal list.
    :param out: What to write, and is not there.
    :param model_card: Of a model: card of its base.
    :param trained: Of a model: its tensors, the later over the earlier.
    """
    from mamushi_curate.removal import read_removal
    from mamushi_curate.rewriting import new_folder, refuse_existing

    refuse_existing(out)
    if model_card is not None and trained:
        with new_folder(out) as folder:
            _write_model(folder, model_card, trained)
    elif list is None or to is None:
        raise UserError("give a LIST and --to, or --model-card and --trained")
    elif to == "jsonl":
        with new_folder(out) as folder:
            _write_splits(folder, read_removal(list))
    elif to == "ids":
        for name in (ids := read_removal(list).ids_with_copies()):
            if name.strip("\ufeff \t") != name or len(name.splitlines()) != 1:
                problem = f"the id {name!r} has a line end or white space, which no line can have"
                raise UserError(problem, where=list, do="give the list itself to apply")
        write_text(out, "".join(f"{name}\n" for name in ids))
    else:
        plugin("format", to).code.write(list, out)
    print(out)
    return 0, {"written": out}


def _write_splits(folder: Path, removal: Removal) -> None:
    """Write id and text of each text that was ranked, by whether it is on the list. Raises
    ``UserError`` for a list away from its run, and for documents of which windows were ranked."""
    from mamushi.io import schemas
    from mamushi.io.tables import read_groups

    ids, examples, written = {*removal.ids_with_copies()}, removal.of_run("examples"), set[str]()
    with (
        (folder / "forget.jsonl").open("w", encoding="utf-8") as forget,
        (folder / "retain.jsonl").open("w", encoding="utf-8") as retain,
    ):
        for group in read_groups(examples, schemas.EXAMPLES, ["id", "text", "section"]):
            for row in group.to_pylist():
                if row.pop("section") == INFERENCE:
                    file = forget if row["id"] in ids else retain
                    file.write(f"{json.dumps(row, ensure_ascii=False)}\n")
                    written |= ids & {row["id"]}
    if not written:
        raise UserError("none of its ids is that of a text that was ranked", where=removal.path)
    # Its header names the splits to `load_dataset`.
    (folder / "README.md").write_text(README, encoding="utf-8")


def _write_model(folder: Path, card: Path, trained: Sequence[Path]) -> None:
    """Write a model into a folder. Raises ``UserError`` for tensors of another model."""
    files = {"model_card": card}
    files |= {f"trained_{place}": path for place, path in enumerate(trained, 1)}
    digests = {name: sha256(path) for name, path in files.items()}
    _check_order(digests["model_card"], trained)
    import torch

    from mamushi.lm.loading import open_model, open_tokenizer
    from mamushi.lm.parameters import merge_adapters
    from mamushi.lm.storage import overlay, writing_safetensors

    model = open_model(card)
    for path in trained:
        if overlay(path, model):
            raise UserError("is an edit of logits", where=path, do="export it with --to edit")
    merge_adapters(model)
    model.to(torch.float32)
    model.config.use_cache = True
    with writing_safetensors():
        model.save_pretrained(folder)
    open_tokenizer(card).save_pretrained(folder)
    write_json(folder / "mamushi.json", {"inputs": digests, "versions": versions()})


def _check_order(card: str, trained: Sequence[Path]) -> None:
    """Raise ``UserError`` unless every file was made from the model of a ``card``, and from the
    file before it, as far as it says so: shapes alone would let those of others pass."""
    before = None
    for path in trained:
        made_from = trained_metadata(path).get("inputs", {})
        if made_from.get("model_card", card) != card:
            raise UserError("was trained from another model", where=path, do="give its card")
        if made_from and made_from.get("trained") != before:
            do = "give the tensors that it started from before it"
            raise UserError("does not start from the file before it", where=path, do=do)
        before = sha256(path)
