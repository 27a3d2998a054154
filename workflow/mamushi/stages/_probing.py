"""What an unlearned model is asked in the job that made it: what it says, how fast it relearns."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.relearning import Feed


def speak(
    args: argparse.Namespace,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    accelerator: Accelerator,
    origin: dict[str, Any],
) -> None:
    """Write the model's continuations of the prompts; the whole model is needed for it."""
    from mamushi.artifacts.tables import write_table
    from mamushi.lm.generate import continuations

    probe = args.settings["probe"]
    said = continuations(model, tokenizer, probe["prompts"], probe["new_tokens"], accelerator)
    write_table(args.continuations, "continuations", said, metadata=origin)


def learn_again(
    args: argparse.Namespace,
    model: PreTrainedModel,
    forget: TokenSet,
    held_out: TokenSet,
    accelerator: Accelerator,
    feed_of: Callable[[TokenSet], Feed | None],
    origin: dict[str, Any],
) -> None:
    """Fine-tune the model on a few forget texts and write its curve; it is another model then."""
    from mamushi.artifacts.tables import write_table
    from mamushi.lm.tokens import subset
    from mamushi.unlearning.relearning import choose, relearn

    wanted, seed = args.settings["probe"]["relearning"], args.settings["seed"]
    few = subset(forget, choose(forget, wanted["examples"], seed))
    curve = relearn(
        model,
        few,
        held_out,
        wanted,
        seed=seed,
        accelerator=accelerator,
        batch_tokens=args.execution["batch_tokens"],
        feed_train=feed_of(few),
        feed_eval=feed_of(held_out),
    )
    write_table(args.relearning, "relearning_curve", curve, metadata=origin)
