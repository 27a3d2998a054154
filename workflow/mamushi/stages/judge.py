"""Let the gold model read what all models of a run said, and put the texts in a table.

The higher its log-likelihood of a text, the more the text is like what a model says that never saw
the forget domain.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mamushi.cli import execution, settings

WRITES = ("out",)
READS = ("model_card", "trained", "continuations")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="the gold model's tensors")
    parser.add_argument(
        "--continuations",
        nargs="+",
        required=True,
        type=Path,
        help="continuations tables; whose they are is read from their place under results",
    )
    parser.add_argument("--out", required=True, type=Path, help="generations table to write")
    execution(parser)
    parser.add_argument(
        "--settings", required=True, type=settings, help="JSON: dataset, model, seed, training, ..."
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for files of another run, or that answer different prompts."""
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.errors import UserError
    from mamushi.evaluation.probes import Said, generations_table, source_of
    from mamushi.lm.generate import log_likelihoods
    from mamushi.lm.loading import open_tokenizer
    from mamushi.stages import _reading

    chosen = args.settings
    sources = [source_of(path, chosen) for path in args.continuations]
    tables: list[dict[str, list[Any]]] = [
        read_table(path, "continuations").to_pydict() for path in args.continuations
    ]
    prompts = tables[0]["prompt"]
    for path, table in zip(args.continuations, tables, strict=True):
        if table["prompt"] != prompts:
            raise UserError(
                f"answers other prompts than {args.continuations[0]}",
                where=path,
                do="delete both and run again",
            )
    tokenizer = open_tokenizer(args.model_card)
    model, accelerator = _reading.opened(args, chosen["precision"])
    said = [
        Said(
            source=source,
            tokens=table["tokens"],
            texts=[tokenizer.decode(ids, skip_special_tokens=True) for ids in table["tokens"]],
            log_likelihoods=log_likelihoods(
                model,
                table["prompt_tokens"],
                table["tokens"],
                args.execution["batch_tokens"],
                accelerator,
            ).tolist(),
        )
        for source, table in zip(sources, tables, strict=True)
    ]
    inputs = {f"continuations of {s}": p for s, p in zip(sources, args.continuations, strict=True)}
    inputs["model_card"] = args.model_card
    if args.trained:
        inputs["trained"] = args.trained
    write_table(
        args.out,
        "generations",
        generations_table(chosen, prompts, said),
        metadata=provenance(chosen, **inputs),
    )
