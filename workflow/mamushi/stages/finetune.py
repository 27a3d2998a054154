"""Fine-tune a base model on a section's texts and keep it: contaminated, gold and beta 0."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.stages import _training

WRITES = ("tensors", "log_table", "card")
READS = ("examples", "tokens", "model_card")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tensors", required=True, type=Path, help="trained tensors to write")
    _training.arguments(parser, "dataset, model, seed, role, section, domains, training")


def run(args: argparse.Namespace) -> None:
    from mamushi.lm.loading import save_trained

    origin = _training.origin(args)
    model, accelerator = _training.trained(args, origin)
    if accelerator.is_main_process:
        save_trained(args.tensors, model, origin)
        # Last, so that a kill before this line still finds the state to go on from.
        args.state.unlink(missing_ok=True)
