"""Fine-tune the gold model on a few forget examples, and measure how fast it learns the domain.

It never saw the domain: an unlearned model that comes back much faster had only hidden it.
"""

from __future__ import annotations

import argparse

from mamushi.stages import _reading

WRITES = ("out",)
READS = ("examples", "tokens", "model_card", "trained")
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    _reading.arguments(
        parser,
        "relearning curve to write",
        "seed, training, precision, trained_blocks, max_length, evaluation, relearning",
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` where there is no forget text to learn, or training diverges."""
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, write_table
    from mamushi.lm.perplexity import require_domains
    from mamushi.lm.tokens import read_tokens, subset
    from mamushi.stages import _unlearning
    from mamushi.unlearning.relearning import choose, relearn

    chosen, relearning = args.settings, args.settings["relearning"]
    source = (args.tokens, args.examples)
    held_out = read_tokens(*source, EVALUATION, chosen["evaluation"]["max_length"])
    require_domains(held_out)
    texts = read_tokens(*source, INFERENCE, chosen["max_length"], domains=[FORGET])
    few = subset(texts, choose(texts, relearning["examples"], chosen["seed"]))
    start = {key: chosen[key] for key in ("training", "precision")}
    opened = argparse.Namespace(
        model_card=args.model_card,
        trained=args.trained,
        settings={"start": start} | {key: chosen[key] for key in ("trained_blocks", "seed")},
    )
    model, accelerator = _unlearning.opened(opened)
    curve = relearn(
        model,
        few,
        held_out,
        relearning,
        seed=chosen["seed"],
        accelerator=accelerator,
        batch_tokens=args.execution["batch_tokens"],
    )
    write_table(args.out, "relearning_curve", curve, metadata=_reading.origin(args))
