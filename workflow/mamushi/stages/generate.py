"""Continue the prompts with a kept model (base, contaminated, gold, beta 0), greedily."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import execution, settings

WRITES = ("out",)
READS = ("model_card", "trained")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="trained tensors to lay over it")
    parser.add_argument("--out", required=True, type=Path, help="continuations table to write")
    execution(parser)
    parser.add_argument(
        "--settings", required=True, type=settings, help="JSON: training, precision, probe"
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for a prompt that does not fit the model with its continuation."""
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_table
    from mamushi.lm.generate import continuations
    from mamushi.lm.loading import open_tokenizer
    from mamushi.stages import _reading

    probe = args.settings["probe"]
    tokenizer = open_tokenizer(args.model_card)
    model, accelerator = _reading.opened(args, args.settings["precision"])
    said = continuations(model, tokenizer, probe["prompts"], probe["new_tokens"], accelerator)
    inputs = {"model_card": args.model_card}
    if args.trained:
        inputs["trained"] = args.trained
    write_table(args.out, "continuations", said, metadata=provenance(args.settings, **inputs))
