"""Turn the texts of a dataset into a model's token ids, once for all later jobs."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("examples", "model_card")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Paths, and the settings ``{"max_length": tokens of a text at most, BOS included}``."""
    parser.add_argument("--examples", type=Path, required=True, metavar="PARQUET")
    parser.add_argument("--model-card", type=Path, required=True, metavar="JSON")
    parser.add_argument("--out", type=Path, required=True, metavar="PARQUET")
    parser.add_argument("--settings", type=settings, required=True, metavar="JSON")


def run(args: argparse.Namespace) -> None:
    """Tokenize every text of every section and write the table ``tokens``."""
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import read_table
    from mamushi.lm import loading, tokens

    card = loading.read_card(args.model_card)
    loading.check_length(args.settings["max_length"], card["max_positions"], str(args.model_card))
    tokens.write_tokens(
        args.out,
        read_table(args.examples, "examples", ["id", "text"]),
        loading.open_tokenizer(args.model_card),
        max_length=args.settings["max_length"],
        vocabulary_size=card["vocabulary_size"],
        provenance=provenance(args.settings, examples=args.examples, model_card=args.model_card),
    )
