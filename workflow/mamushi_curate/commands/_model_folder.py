"""Write a model as a folder of its own: the base with trained tensors laid over it, in order.

An unlearned model is its base, the tensors of the model that it started from (embedding, head and
blocks), and those that unlearning trained (blocks). Other programs open the folder by itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse._ActionsContainer) -> None:
    """Add the options of a model."""
    card, trained = "card of the base model", "tensors, the later over the earlier"
    parser.add_argument("--model-card", type=Path, help=card)
    parser.add_argument("--trained", nargs="+", type=Path, help=trained)
    dtype = "of all tensors; bf16 halves the folder and rounds small steps away (default: fp32)"
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help=dtype)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for tensors of another model, and for a folder that exists."""
    import os
    import shutil

    import torch

    from mamushi.errors import UserError
    from mamushi.io.files import sha256, write_json
    from mamushi.io.provenance import versions
    from mamushi.lm.loading import open_model, open_tokenizer
    from mamushi.lm.parameters import merge_adapters
    from mamushi.lm.storage import overlay, writing_safetensors
    from mamushi_curate.rewriting import refuse_existing

    refuse_existing(args.out)
    dtype = torch.float32 if args.dtype == "fp32" else torch.bfloat16
    _check_order(args.model_card, args.trained)
    model = open_model(args.model_card)
    for path in args.trained:
        if overlay(path, model):
            raise UserError("is an edit of logits, which no folder of weights has", where=path)
    merge_adapters(model)
    model.to(dtype)
    model.config.use_cache = True
    part = args.out.with_name(f".{args.out.name}.{os.getpid()}.part")
    try:
        with writing_safetensors():
            model.save_pretrained(part)
        open_tokenizer(args.model_card).save_pretrained(part)
        files = {"model_card": args.model_card}
        files |= {f"trained_{place}": path for place, path in enumerate(args.trained, 1)}
        digests = {name: sha256(path) for name, path in files.items()}
        made_from = {"dtype": args.dtype, "inputs": digests, "versions": versions()}
        write_json(part / "mamushi.json", made_from)
        part.rename(args.out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_order(card: Path, trained: list[Path]) -> None:
    """Check that every file was made from this model and from the file before it, as far as it says
    so.

    Shapes alone would let the tensors of one model pass for those of another of its kind. Nor are
    tensors exported that a run kept and a later one, whose card lies beside them, did not.
    """
    from mamushi.errors import UserError
    from mamushi.io.files import read_json, sha256
    from mamushi.io.tensors import trained_metadata

    model, before = sha256(card), None
    for path in trained:
        stored, beside = trained_metadata(path), path.with_name("card.json")
        run_card = read_json(beside) if beside.exists() else {}
        # A model's card, which may lie there as well, has its settings under `provenance`.
        if "settings" in run_card and any(
            run_card.get(key) != value for key, value in stored.items()
        ):
            do = "set keep_checkpoints, delete the card and run again"
            raise UserError("was made by another run than the card beside it", where=path, do=do)
        made_from = stored.get("inputs", {})
        if made_from.get("model_card", model) != model:
            raise UserError("was trained from another model", where=path, do="give its card")
        if made_from and made_from.get("trained") != before:
            problem = "does not start from the file before it" if before else "starts from others"
            raise UserError(
                problem, where=path, do="give the tensors that it started from before it"
            )
        before = sha256(path)
