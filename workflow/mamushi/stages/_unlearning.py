"""What the stages of unlearning have in common: the model that they start from, and its trunk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk


def opened(args: argparse.Namespace) -> tuple[PreTrainedModel, Accelerator]:
    """The start model on its device, in eval mode, and its accelerator.

    Gradients are on for the last ``trained_blocks`` blocks alone, which lie in fp32; embeddings,
    head and norms lie in the forward precision, whatever the start model trained of them. ``args``
    has ``model_card``, ``trained`` (or None) and ``settings`` with ``start`` and
    ``trained_blocks``. Raises ``UserError`` when the model has fewer blocks than are to be trained.
    """
    from mamushi.errors import UserError
    from mamushi.lm import device
    from mamushi.lm.loading import open_trained
    from mamushi.lm.parameters import decoder_blocks, freeze

    start, wanted = args.settings["start"], args.settings["trained_blocks"]
    device.reproducible(args.settings.get("seed", 0))
    accelerator = device.accelerator(start["precision"])
    model = open_trained(args.model_card, args.trained, start["training"])
    blocks = len(decoder_blocks(model)[1])
    if wanted > blocks:
        raise UserError(
            f"asks for {wanted} blocks, but the model has {blocks}",
            where="unlearning.trained_blocks",
            do=f"set it to {blocks} or fewer",
        )
    others = ("train_input_embedding", "train_output_head", "train_final_norm")
    freeze(model, {"trained_blocks": wanted, **dict.fromkeys(others, False)})
    # Only now, because which weights lie in the forward precision is read from what is frozen.
    return device.place(model, start["precision"], accelerator.device), accelerator


def cached_trunk(
    args: argparse.Namespace,
    model: PreTrainedModel,
    accelerator: Accelerator,
    texts: Sequence[TokenSet],
) -> Trunk | None:
    """The trunk's output for ``texts``, from the file ``args.trunk`` or computed and kept there.

    None where no file is named, or where ``execution.cache_trunk`` is off. ``model`` is still the
    start. The file is shared by all runs that start there and is no artifact: a rule's output that
    is deleted once it is used would run again, and all that read it, whenever one of them does. So
    it is looked for here, checked against all that it depends on, and made by the first to come
    while the others wait.
    """
    from mamushi.artifacts.provenance import provenance
    from mamushi.errors import UserError
    from mamushi.running.identity import digest
    from mamushi.unlearning.trunk import Trunk, write_trunk

    if args.trunk is None or not args.execution.get("cache_trunk", True):
        return None
    chosen = {key: args.settings[key] for key in ("start", "trained_blocks", "max_length")}
    settings = chosen | {"evaluation": args.settings["evaluation"]}
    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    if args.trained:
        inputs["trained"] = args.trained
    code = digest("mamushi.unlearning.trunk.Trunk", "mamushi.unlearning.trunk.write_trunk")
    about = provenance(settings | {"code": code}, **inputs)

    def found() -> Trunk | None:
        try:
            trunk = Trunk.open(args.trunk)
        except UserError:
            # Missing, or cut off by a full disk or a kill: made again.
            return None
        made_from = {key: trunk.metadata.get(key) for key in about}
        return trunk if made_from == about else None

    if accelerator.is_main_process and found() is None:
        with _alone(args.trunk):
            if found() is None:
                blocks, batch = chosen["trained_blocks"], args.execution["batch_tokens"]
                write_trunk(args.trunk, model, texts, blocks, batch, accelerator, about)
    accelerator.wait_for_everyone()
    return found()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Within the block, no other process that asks for the same path is in it.

    The lock goes with the process that holds it, however that ends. On a file system without locks
    several may compute the same file, of which the last is kept.
    """
    import contextlib
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as handle:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
