"""What the stages that only read a model have in common: their options, and how it is opened."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.cli import execution, settings

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel


def arguments(parser: argparse.ArgumentParser, out: str, chosen: str) -> None:
    """Add the options; ``out`` says what is written, ``chosen`` what the settings hold."""
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="trained tensors to lay over it")
    parser.add_argument("--out", required=True, type=Path, help=out)
    execution(parser)
    parser.add_argument("--settings", required=True, type=settings, help=f"JSON: {chosen}")


def opened(args: argparse.Namespace, precision: str) -> tuple[PreTrainedModel, Accelerator]:
    """The model on its device, as it was at the end of its training, and its accelerator."""
    from mamushi.lm import device
    from mamushi.lm.loading import open_trained

    device.reproducible(0)
    accelerator = device.accelerator(precision)
    model = open_trained(args.model_card, args.trained, args.settings["training"])
    return device.place(model, precision, accelerator.device), accelerator


def origin(args: argparse.Namespace) -> dict[str, Any]:
    """The provenance of what is written."""
    from mamushi.artifacts.provenance import provenance

    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    if args.trained:
        inputs["trained"] = args.trained
    return provenance(args.settings, **inputs)
