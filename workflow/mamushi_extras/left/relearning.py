"""Was it forgotten or only hidden? Fine-tune on a few forget examples and see what comes back (Hu
et al. 2025, Jogging the Memory of Unlearned LLMs via Benign Relearning; Lynch et al. 2024, Eight
Methods to Evaluate Robust Unlearning in LLMs). The gold standard, which never saw the domain, shows
how fast it can be learned at all.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.errors import located
from mamushi.lm.attention import can_share
from mamushi.lm.batches import batch_of, batches, examples_of_step
from mamushi.lm.loss import TokenLoss
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import Descent, Objective, Step, TrainingLoop


def choose_texts(texts: TokenSet, examples: int, seed: int) -> NDArray[np.int64]:
    """Draw rows, ascending, of ``examples`` texts with a token to predict, or of all where there
    are fewer, by the seed alone; more examples contain the fewer."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(texts.counted > 0))
    return np.sort(order[:examples]).astype(np.int64)


def relearn(
    model: PreTrainedModel,
    few: TokenSet,
    held_out: TokenSet,
    settings: Mapping[str, Any],
    *,
    seed: int,
    accelerator: Accelerator,
    batch_tokens: int,
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Fine-tune what requires a gradient, in place, on ``few``: by AdamW at a constant
    ``learning_rate`` over batches of ``batch_size`` texts, in eval mode, so that no dropout tells
    two models apart. Return the columns of ``relearning_curve`` and ``relearned``, after each
    number of ``steps``. Of several processes each takes all steps. Raises ``UserError`` that names
    the step when a loss or perplexity is not finite."""
    columns, texts = defaultdict[str, list[Any]](list), defaultdict[str, list[Any]](list)
    measured_steps = {0, *settings["steps"]}
    batch, shared = int(settings["batch_size"]), can_share(model)

    def step(number: int) -> Step:
        rows = examples_of_step(number, len(few), batch, seed)
        tokens = max(1, int(few.counted[rows].sum()))
        pieces = batches(few.lengths[rows], batch_tokens, shared=shared)
        shares = [partial(loss, rows[piece], tokens) for piece in pieces]
        return Step(shares, tokens, (number + 1) * batch / len(few))

    def loss(rows: NDArray[np.int64], tokens: int, module: nn.Module) -> list[Tensor]:
        batch = batch_of(few, rows, accelerator.device, shared=shared)
        # All processes add the same.
        return [module(batch) / (tokens * accelerator.num_processes)]

    def measure(step: int, optimizer: object = None) -> None:
        if step not in measured_steps:
            return
        nll = text_nll(model, held_out, batch_tokens, accelerator)
        with located(f"relearning, after step {step}"):
            table = perplexity_table(nll, held_out.domains)
        columns["step"].append(step)
        columns["examples"].append(len(few))
        for domain, value in zip(table["domain"], table["perplexity"], strict=True):
            columns[f"ppl_{domain}"].append(value)
        if step:
            texts["step"] += [step] * len(held_out)
            for name, values in (("id", held_out.ids), ("tokens", nll.tokens), ("nll", nll.nll)):
                texts[name] += values.tolist()

    objective = Objective("relearning", model, TokenLoss(model), step, updated=measure)
    model.eval()
    measure(0)
    # Betas, epsilon and weight decay are what all fine-tuning here has by default.
    descent = Descent(float(settings["learning_rate"]), (0.9, 0.999), 1e-8, 0.01)
    TrainingLoop(objective, descent, max(measured_steps), accelerator).run()
    return columns, texts
