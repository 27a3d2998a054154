"""Was it forgotten or only hidden? Fine-tune on a few forget examples and see what comes back.

A model that merely learned to suppress a domain has it back after a few steps on a few texts of it;
one that never saw the domain, the gold standard, shows how fast it can be learned at all. Such
attacks undo most unlearning methods (Hu et al. 2025, Unlearning or Obfuscating? Jogging the Memory
of Unlearned LLMs via Benign Relearning; Lynch et al. 2024, Eight Methods to Evaluate Robust
Unlearning in LLMs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.errors import located
from mamushi.io.tables import FORGET
from mamushi.lm.attention import supports
from mamushi.lm.batches import batch_of, batches, examples_of_step
from mamushi.lm.loss import TokenLoss
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import Descent, Objective, Step, train

# What all fine-tuning here has by default; there is too little of it to be worth tuning.
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.999), 1e-8, 0.01
REMEDY = "lower probe.relearning.learning_rate"


def choose(texts: TokenSet, examples: int, seed: int) -> NDArray[np.int64]:
    """Draw rows, ascending, of ``examples`` texts at random without replacement.

    All where there are fewer. Only texts with a token to predict are candidates. The same texts and
    seed give the same rows, whatever was unlearned, and more examples contain the fewer.
    """
    candidates = np.flatnonzero(texts.counted > 0)
    assert len(candidates), "no forget text with a token to predict"
    order = np.random.default_rng(seed).permutation(candidates)
    return np.sort(order[:examples]).astype(np.int64)


@dataclass(frozen=True)
class Relearned:
    """Columns of the artifacts ``relearning_curve`` and ``relearned``, by increasing step."""

    curve: dict[str, list[Any]]
    texts: dict[str, list[Any]]


def relearn(
    model: PreTrainedModel,
    few: TokenSet,
    held_out: TokenSet,
    settings: Mapping[str, Any],
    *,
    seed: int,
    accelerator: Accelerator,
    batch_tokens: int,
) -> Relearned:
    """Fine-tune what requires a gradient, in place, on ``few``; perplexity of ``held_out`` between.

    AdamW at a constant ``learning_rate`` over batches of ``batch_size`` texts, the same batches for
    the same seed, in eval mode, so that no dropout tells two models apart. Perplexity is measured
    before the first step and after each number of ``steps``. Of several processes each takes all
    steps. Raises ``UserError`` that names the step when a loss or perplexity is not finite.
    """
    columns: dict[str, list[Any]] = {
        name: [] for name in ("step", "examples", "ppl_forget", "ppl_retain")
    }
    texts: dict[str, list[Any]] = {name: [] for name in ("step", "id", "tokens", "nll")}
    forget = held_out.domains == FORGET
    measured_steps = {0, *(int(step) for step in settings["steps"])}
    batch, shared = int(settings["batch_size"]), supports(model)

    def step(number: int) -> Step:
        rows = examples_of_step(number, len(few), batch, seed)
        tokens = max(1, int(few.counted[rows].sum()))
        parts = [rows[part] for part in batches(few.lengths[rows], batch_tokens, shared=shared)]
        epoch = (number + 1) * batch / len(few)
        return Step([partial(loss, part, tokens) for part in parts], tokens, epoch)

    def loss(rows: NDArray[np.int64], tokens: int, module: nn.Module) -> list[Tensor]:
        return [module(batch_of(few, rows, accelerator.device, shared=shared)) / tokens]

    def measure(step: int, optimizer: object = None) -> None:
        if step not in measured_steps:
            return
        nll = text_nll(model, held_out, batch_tokens, accelerator)
        with located(f"relearning, after step {step}"):
            table = perplexity_table(nll, held_out.domains, REMEDY)
        columns["step"].append(step)
        columns["examples"].append(len(few))
        for domain, value in zip(table["domain"], table["perplexity"], strict=True):
            columns[f"ppl_{domain}"].append(value)
        if step:
            texts["step"] += [step] * int(forget.sum())
            for name, values in (("id", held_out.ids), ("tokens", nll.tokens), ("nll", nll.nll)):
                texts[name] += values[forget].tolist()

    objective = Objective(
        model, TokenLoss(model), "relearning", REMEDY, step, together=False, updated=measure
    )
    model.eval()
    measure(0)
    descent = Descent(float(settings["learning_rate"]), BETAS, EPSILON, WEIGHT_DECAY)
    train(objective, descent, max(measured_steps), accelerator)
    return Relearned(columns, texts)
