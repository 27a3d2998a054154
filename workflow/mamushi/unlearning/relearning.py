"""Was it forgotten or only hidden? Fine-tune on a few forget examples and see what comes back.

A model that merely learned to suppress a domain has it back after a few steps on a few texts of it;
one that never saw the domain, the gold standard, shows how fast it can be learned at all. Such
attacks undo most unlearning methods (Hu et al. 2025, Unlearning or Obfuscating? Jogging the Memory
of Unlearned LLMs via Benign Relearning; Lynch et al. 2024, Eight Methods to Evaluate Robust
Unlearning in LLMs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.artifacts.domains import DOMAINS
from mamushi.errors import UserError
from mamushi.lm.attention import supports
from mamushi.lm.batches import batches, collate, examples_of_step
from mamushi.lm.loss import TokenLoss
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress

Feed = Callable[[NDArray[np.int64]], None]
"""Told the rows of a batch before its forward pass."""

# What all fine-tuning here has by default; there is too little of it to be worth tuning.
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.999), 1e-8, 0.01
REMEDY = "lower probe.relearning.learning_rate"


def choose(texts: TokenSet, examples: int, seed: int) -> NDArray[np.int64]:
    """Rows, ascending, of ``examples`` texts at random without replacement: (chosen,).

    All where there are fewer. Only texts with a token to predict are candidates. The same texts and
    seed give the same rows, whatever was unlearned, and more examples contain the fewer. Raises
    ``UserError`` when there is no candidate.
    """
    candidates = np.flatnonzero(texts.lengths > 1)
    if not len(candidates):
        raise UserError(
            "there is no forget text with a token to predict to relearn", do="check the data card"
        )
    order = np.random.default_rng(seed).permutation(candidates)
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
    feed_train: Feed | None = None,
    feed_eval: Feed | None = None,
) -> dict[str, list[Any]]:
    """Fine-tune what requires a gradient, in place, on ``few``; perplexity of ``held_out`` between.

    AdamW at a constant ``learning_rate`` over batches of ``batch_size`` texts, the same batches for
    the same seed; the loss of a step is the token-weighted mean NLL of its batch. In eval mode, so
    that no dropout tells two models apart. Perplexity is measured before the first step and after
    each number of ``steps``: the columns of the artifact ``relearning_curve``, by increasing step.
    ``settings`` has ``learning_rate``, ``batch_size`` and ``steps``.

    ``batch_tokens`` bounds the tokens of a forward pass, without effect on results. ``feed_train``
    and ``feed_eval`` are told the rows of ``few`` and ``held_out`` before each of their forward
    passes. Processes exchange nothing: each that calls does the same. Raises ``UserError`` that
    names the step when a loss or perplexity is not finite.
    """
    wanted = sorted({0, *(int(step) for step in settings["steps"])})
    loss_of = TokenLoss(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        trained,
        lr=float(settings["learning_rate"]),
        betas=BETAS,
        eps=EPSILON,
        weight_decay=WEIGHT_DECAY,
        fused=True,
    )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("step", "examples", "ppl_forget", "ppl_retain")
    }
    model.eval()
    # What the training before left there is no gradient of these texts.
    optimizer.zero_grad(set_to_none=True)
    with Progress(wanted[-1], "relearn", "step") as progress:
        for step in range(wanted[-1] + 1):
            if step > 0:
                rows = examples_of_step(step - 1, len(few), int(settings["batch_size"]), seed)
                loss = _accumulate(loss_of, few, rows, batch_tokens, accelerator, feed_train)
                if not math.isfinite(loss):
                    raise UserError(f"relearning: the loss is {loss} at step {step}", do=REMEDY)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                progress.advance(1, f"loss {loss:.3f}")
            if step in wanted:
                found = _measured(model, held_out, step, batch_tokens, accelerator, feed_eval)
                columns["step"].append(step)
                columns["examples"].append(len(few))
                for domain in DOMAINS:
                    columns[f"ppl_{domain}"].append(found[domain])
    return columns


def _accumulate(
    loss_of: TokenLoss,
    few: TokenSet,
    rows: NDArray[np.int64],
    batch_tokens: int,
    accelerator: Accelerator,
    feed: Feed | None,
) -> float:
    """Add the gradient of the step's mean NLL, by parts; return that mean."""
    lengths = few.lengths[rows]
    tokens = max(1, int(np.maximum(lengths - 1, 0).sum()))
    total = 0.0
    shared = supports(loss_of.model)
    for part in batches(lengths, batch_tokens, shared=shared):
        batch = collate([few[row] for row in rows[part]], accelerator.device, shared=shared)
        if feed is not None:
            feed(rows[part])
        with accelerator.autocast():
            loss = loss_of(batch) / tokens
        torch.autograd.backward(loss)
        total += float(loss.detach())
    return total


def _measured(
    model: PreTrainedModel,
    held_out: TokenSet,
    step: int,
    batch_tokens: int,
    accelerator: Accelerator,
    feed: Feed | None,
) -> dict[str, float]:
    """Held-out perplexity by domain after ``step`` steps."""
    nll = text_nll(model, held_out, batch_tokens, accelerator, feed=feed)
    try:
        table = perplexity_table(nll, held_out.domains)
    except UserError as error:
        remedy = REMEDY if step else "lower the learning rate of what trained it"
        raise UserError(f"relearning, after step {step}: {error.what}", do=remedy) from error
    return dict(zip(table["domain"], table["perplexity"], strict=True))
