"""Perplexity of a kept model (base, contaminated, gold, beta 0) on the held-out sets."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import execution, settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="trained tensors to lay over it")
    parser.add_argument("--out", required=True, type=Path, help="perplexity table to write")
    execution(parser)
    parser.add_argument(
        "--settings", required=True, type=settings, help="JSON: evaluation, training"
    )


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts import EVALUATION, write_table
    from mamushi.lm import device
    from mamushi.lm.loading import open_trained
    from mamushi.lm.perplexity import perplexity_table, text_nll
    from mamushi.lm.tokens import read_tokens
    from mamushi.provenance import provenance

    training = args.settings["training"]
    device.reproducible(0)
    accelerator = device.accelerator(training["precision"])
    model = open_trained(args.model_card, args.trained, training)
    device.place(model, training["precision"], accelerator.device)
    texts = read_tokens(
        args.tokens, args.examples, EVALUATION, args.settings["evaluation"]["max_length"]
    )
    nll = text_nll(model, texts, args.execution["batch_tokens"], accelerator)
    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    if args.trained:
        inputs["trained"] = args.trained
    write_table(
        args.out,
        "perplexity",
        perplexity_table(nll, texts.domains),
        metadata=provenance(args.settings, **inputs),
    )
