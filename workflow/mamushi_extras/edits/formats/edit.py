"""of the trained.safetensors of a `tilt` or `logit_bias`: a folder for mamushi.edits.load."""

from pathlib import Path


def write(tensors: Path, out: Path) -> None:
    """Write ``edit.safetensors`` and ``card.json``, which has digests of what the edit was fitted
    to, strength, temperature, effect in nats and versions. Of a bias also ``logit_bias.json``, what
    a server adds to the logit of each token that changes, by id, in the range to which it clips.
    Raises ``UserError`` for tensors that are no edit."""
    import json
    from shutil import copyfile

    from mamushi.errors import UserError
    from mamushi.io.files import read_json, write_text
    from mamushi_curate.rewriting import new_folder
    from mamushi_extras.edits import CARD, TENSORS
    from mamushi_extras.edits.head import read_edit

    if "strength" not in read_json(card := tensors.with_name(CARD)):
        raise UserError("is no edit of logits", where=tensors, do="export it with --trained")
    edit = read_edit(tensors)
    with new_folder(out) as folder:
        copyfile(tensors, folder / TENSORS)
        copyfile(card, folder / CARD)
        if edit.bias is not None:
            clipped = (edit.strength * edit.bias).clamp(-100, 100).tolist()
            bias = {token: value for token, value in enumerate(clipped) if value}
            write_text(folder / "logit_bias.json", json.dumps(bias))
