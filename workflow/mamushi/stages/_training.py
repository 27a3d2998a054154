"""What the stages that train have in common: their options, the run itself, and its record."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.cli import execution, settings

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel


def arguments(parser: argparse.ArgumentParser, chosen: str) -> None:
    """Add the options; ``chosen`` says what the settings hold."""
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--log-table", required=True, type=Path, help="step log to write")
    parser.add_argument("--card", required=True, type=Path, help="card to write")
    parser.add_argument("--state", required=True, type=Path, help="checkpoint to resume from")
    execution(parser)
    parser.add_argument("--settings", required=True, type=settings, help=f"JSON: {chosen}")


def origin(args: argparse.Namespace, **more: Path) -> dict[str, Any]:
    """The provenance of what is written; ``more`` are inputs beside those that all have."""
    from mamushi.artifacts.provenance import provenance

    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    return provenance(args.settings, **inputs, **more)


def trained(
    args: argparse.Namespace, origin: dict[str, Any], removed: Sequence[str] = ()
) -> tuple[PreTrainedModel, Accelerator]:
    """A fresh base model, fine-tuned on the section's texts but for ``removed``.

    Writes the step log and the card; a killed run of the same ``origin`` goes on from its state.
    """
    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.tables import write_table
    from mamushi.artifacts.tensors import drop_others
    from mamushi.lm import device
    from mamushi.lm.batches import steps
    from mamushi.lm.finetune import finetune
    from mamushi.lm.loading import open_model
    from mamushi.lm.parameters import freeze
    from mamushi.lm.tokens import read_tokens

    chosen, training = args.settings, args.settings["training"]
    wanted = (args.tokens, args.examples, chosen["section"], training["max_length"])
    texts = read_tokens(*wanted, domains=chosen["domains"], without=removed)
    # The step-matched arm gives every budget, gold at 1 too, the updates that beta 0 gets.
    counted = read_tokens(*wanted) if training["steps"] == "matched" else texts
    total = steps(len(counted), training["batch_size"], training["epochs"])

    device.reproducible(chosen["seed"])
    accelerator = device.accelerator(training["precision"])
    model = open_model(args.model_card)
    freeze(model, training)
    device.place(model, training["precision"], accelerator.device)
    log = finetune(
        model,
        texts,
        training | args.execution,
        total=total,
        seed=chosen["seed"],
        accelerator=accelerator,
        what=chosen["role"],
        state=args.state,
        fingerprint=hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest(),
    )
    if accelerator.is_main_process:
        write_table(args.log_table, "train_log", log.columns, metadata=origin)
        changed = [p for p in model.parameters() if p.requires_grad]
        counts = {
            "texts": len(texts),
            "removed": len(removed),
            "steps": total,
            "trained_parameters": sum(p.numel() for p in changed),
            "trained_tensors": len(changed),
        }
        drop_others(args.card, origin)
        write_json(args.card, origin | counts)
    return model, accelerator
