"""Perplexity of a kept model (base, contaminated, gold, beta 0) on the held-out sets."""

from __future__ import annotations

import argparse

from mamushi.stages import _reading

WRITES = ("out",)
READS = ("examples", "tokens", "model_card", "trained")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    _reading.arguments(parser, "perplexity table to write", "evaluation, training, precision")


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    chosen = args.settings["evaluation"]
    model, accelerator = _reading.opened(args, args.settings["precision"])
    texts = read_tokens(args.tokens, args.examples, EVALUATION, chosen["max_length"])
    require_domains(texts)
    nll = text_nll(model, texts, args.execution["batch_tokens"], accelerator)
    table = perplexity_table(nll, texts.domains)
    write_table(args.out, "perplexity", table, metadata=_reading.origin(args))
