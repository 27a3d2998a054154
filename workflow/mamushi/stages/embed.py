"""Embed the inference section with the contaminated model."""

from __future__ import annotations

import argparse

from mamushi.stages import _reading

WRITES = ("out",)
READS = ("examples", "tokens", "model_card", "trained")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    _reading.arguments(parser, "embeddings table to write", "embedding, training")


def run(args: argparse.Namespace) -> None:
    import pyarrow as pa

    from mamushi.artifacts.tables import INFERENCE, write_table
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens

    chosen = args.settings["embedding"]
    model, accelerator = _reading.opened(args, chosen["precision"])
    texts = read_tokens(args.tokens, args.examples, INFERENCE, chosen["max_length"])
    vectors = embed(
        model,
        texts,
        pooling=chosen["pooling"],
        layer=chosen["layer"],
        batch_tokens=args.execution["batch_tokens"],
        accelerator=accelerator,
    )
    flat = pa.array(vectors.reshape(-1))
    write_table(
        args.out,
        "embeddings",
        {
            "id": texts.ids,
            "domain": texts.domains,
            "embedding": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        },
        metadata=_reading.origin(args),
    )
