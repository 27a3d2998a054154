"""Fine-tune a base model without the examples of a removal list, and measure it.

Both in one process: loading the base model once more and passing billions of trained weights
through a file would cost more than the measurement. The weights are kept only when asked for.

Who chose the list makes no difference: where selectors, or budgets that round to one number of
texts, remove the same texts, one fine-tune is made and the others copy what it measured.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mamushi.stages import _training, _twins

WRITES = ("perplexity", "log_table", "card", "tensors")
READS = ("examples", "tokens", "model_card", "removal")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--removal", required=True, type=Path, help="removals table")
    parser.add_argument("--perplexity", required=True, type=Path, help="perplexity table to write")
    parser.add_argument("--tensors", nargs="?", type=Path, help="trained tensors to write")
    _training.arguments(parser, "dataset, model, seed, section, domains, training, evaluation")


def shared(args: argparse.Namespace) -> AbstractContextManager[Path | None]:
    """Within the block, no other retraining on the same texts runs. Gives the card of one that was
    finished before, after copying its results; None if there is none."""
    return _twins.copied(args, _origin(args, _removed(args)))


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.loading import save_trained
    from mamushi.lm.perplexity import perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    length = args.settings["evaluation"]["max_length"]
    held_out = read_tokens(args.tokens, args.examples, EVALUATION, length)
    require_domains(held_out)
    removed = _removed(args)
    origin = _origin(args, removed)
    model, accelerator = _training.trained(args, origin, removed)
    if accelerator.is_main_process:
        nll = text_nll(model, held_out, args.execution["batch_tokens"], accelerator)
        table = perplexity_table(nll, held_out.domains)
        write_table(args.perplexity, "perplexity", table, metadata=origin)
        if args.tensors:
            save_trained(args.tensors, model, origin)
        args.state.unlink(missing_ok=True)


def _removed(args: argparse.Namespace) -> list[str]:
    from mamushi.artifacts.tables import read_table

    ids: list[str] = read_table(args.removal, "removals", ["id"])["id"].to_pylist()
    return ids


def _origin(args: argparse.Namespace, removed: list[str]) -> dict[str, Any]:
    return _training.origin(args, removal=args.removal) | {"removal_set": _twins.digest(removed)}
