"""What an unlearned model is asked in the job that made it: what it says, how fast it relearns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from mamushi.configuration.settings import Probe, Unlearn
    from mamushi.lm.tokens import TokenSet
    from mamushi.running.stage import Job
    from mamushi.unlearning.relearning import Feed


def said(
    probe: Probe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    accelerator: Accelerator,
) -> dict[str, list[Any]]:
    """The model's continuations of the prompts, for which the whole model is needed: columns of
    the table ``continuations``."""
    from mamushi.lm.generate import continuations

    return continuations(model, tokenizer, probe.prompts, probe.new_tokens, accelerator)


def relearned(
    chosen: Unlearn,
    job: Job,
    model: PreTrainedModel,
    forget: TokenSet,
    held_out: TokenSet,
    accelerator: Accelerator,
    feed_of: Callable[[TokenSet], Feed | None],
) -> dict[str, list[Any]]:
    """Fine-tune the model on a few forget texts, after which it is another one: columns of the
    table ``relearning_curve``."""
    from mamushi.lm.tokens import subset
    from mamushi.unlearning.relearning import choose, relearn

    assert chosen.probe is not None
    wanted = chosen.probe.relearning
    few = subset(forget, choose(forget, wanted.examples, chosen.seed))
    return relearn(
        model,
        few,
        held_out,
        asdict(wanted),
        seed=chosen.seed,
        accelerator=accelerator,
        batch_tokens=job.execution.batch_tokens,
        feed_train=feed_of(few),
        feed_eval=feed_of(held_out),
    )
