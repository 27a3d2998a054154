"""Embed the inference section with the contaminated model."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import execution, settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="trained tensors to lay over it")
    parser.add_argument("--out", required=True, type=Path, help="embeddings table to write")
    execution(parser)
    parser.add_argument(
        "--settings", required=True, type=settings, help="JSON: embedding, training"
    )


def run(args: argparse.Namespace) -> None:
    import pyarrow as pa

    from mamushi.artifacts import INFERENCE, write_table
    from mamushi.lm import device
    from mamushi.lm.embed import embed
    from mamushi.lm.loading import open_trained
    from mamushi.lm.tokens import read_tokens
    from mamushi.provenance import provenance

    chosen = args.settings["embedding"]
    device.reproducible(0)
    accelerator = device.accelerator(chosen["precision"])
    model = open_trained(args.model_card, args.trained, args.settings["training"])
    device.place(model, chosen["precision"], accelerator.device)
    texts = read_tokens(args.tokens, args.examples, INFERENCE, chosen["max_length"])
    vectors = embed(
        model,
        texts,
        pooling=chosen["pooling"],
        layer=chosen["layer"],
        batch_tokens=args.execution["batch_tokens"],
        accelerator=accelerator,
    )
    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    if args.trained:
        inputs["trained"] = args.trained
    flat = pa.array(vectors.reshape(-1))
    write_table(
        args.out,
        "embeddings",
        {
            "id": texts.ids,
            "domain": texts.domains,
            "embedding": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        },
        metadata=provenance(args.settings, **inputs),
    )
