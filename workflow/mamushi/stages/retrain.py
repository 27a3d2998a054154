"""Fine-tune a base model without the examples of a removal list, and measure it.

Both in one process: loading the base model once more and passing billions of trained weights
through a file would cost more than the measurement. The weights are kept only when asked for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.stages import _training

WRITES = ("perplexity", "log_table", "card", "tensors")
READS = ("examples", "tokens", "model_card", "removal")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--removal", required=True, type=Path, help="removals table")
    parser.add_argument("--perplexity", required=True, type=Path, help="perplexity table to write")
    parser.add_argument("--tensors", nargs="?", type=Path, help="trained tensors to write")
    _training.arguments(parser, "dataset, model, seed, section, domains, training, evaluation")


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts import EVALUATION, read_table, write_table
    from mamushi.lm.loading import save_trained
    from mamushi.lm.perplexity import perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    length = args.settings["evaluation"]["max_length"]
    held_out = read_tokens(args.tokens, args.examples, EVALUATION, length)
    require_domains(held_out)
    removed = read_table(args.removal, "removals", ["id"])["id"].to_pylist()
    origin = _training.origin(args, removal=args.removal)
    model, accelerator = _training.trained(args, origin, removed)
    if accelerator.is_main_process:
        nll = text_nll(model, held_out, args.execution["batch_tokens"], accelerator)
        table = perplexity_table(nll, held_out.domains)
        write_table(args.perplexity, "perplexity", table, metadata=origin)
        if args.tensors:
            save_trained(args.tensors, model, origin)
        args.state.unlink(missing_ok=True)
