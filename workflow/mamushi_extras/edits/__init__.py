"""Edits of a model's logits, which train nothing; in Python ``mamushi.edits.load``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TENSORS, CARD = "edit.safetensors", "card.json"


def lay_over(path: Path, model: PreTrainedModel) -> None:
    """Let a model give the logits that the edit in a file makes of its own."""
    from mamushi_extras.edits import head

    head.lay_over(model, head.read_edit(path))


def load(model: PreTrainedModel, folder: str | Path) -> PreTrainedModel:
    """Put the edit that ``mamushi export --to edit`` wrote into ``folder`` around the output head
    of a model, in place, and return it: ``generate`` then draws from the edited logits.

    The model is the one that the edit was fitted to. Raises ``UserError`` for one of another
    vocabulary or width, one whose export names other files, and one that has an edit already.
    """
    from mamushi.errors import UserError
    from mamushi.io.files import read_json
    from mamushi_extras.edits import head
    from mamushi_extras.edits.editing import require_editable

    inputs, edit = read_json(Path(folder) / CARD)["inputs"], head.read_edit(Path(folder) / TENSORS)
    require_editable(model)
    rows, width = model.get_output_embeddings().weight.shape
    lengths = [len(of) for of in (edit.bias, edit.c) if of is not None]
    if lengths not in ([], [rows]) or (edit.A is not None and edit.A.shape[1] != width):
        raise UserError(f"is of another model than {model.name_or_path}", where=folder)
    exported = Path(model.name_or_path) / "mamushi.json"
    if exported.is_file():
        fitted_to = {inputs[name] for name in ("model_card", "trained") if name in inputs}
        if {*read_json(exported)["inputs"].values()} != fitted_to:
            raise UserError(f"was fitted to another model than {exported.parent}", where=folder)
    head.lay_over(model, edit)
    return model
