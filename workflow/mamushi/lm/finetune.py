"""Partial fine-tuning: one engine for contaminated, gold, beta 0 and every retrained model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.attention import supports
from mamushi.lm.batches import collate, examples_of_step, steps
from mamushi.lm.loss import TokenLoss
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import Descent, Objective, Step, TrainLog, micro_batches, train


def mean_nll(
    model: PreTrainedModel,
    texts: TokenSet,
    settings: Mapping[str, Any],
    seed: int,
    accelerator: Accelerator,
    what: str = "fine-tune",
    kept: NDArray[np.bool_] | None = None,
) -> Objective:
    """Make the objective of fine-tuning: of each step the weighted mean of the NLL over its
    predicted tokens, sum w nll / sum w. ``kept`` is that of ``examples_of_step``."""
    batch, size = int(settings["batch_size"]), int(settings["micro_batch_size"])
    shared = supports(model)
    counted = texts.counted

    def step(number: int) -> Step:
        rows = examples_of_step(number, len(texts), batch, seed, kept)
        tokens = int(np.maximum(texts.lengths[rows] - 1, 0).sum())
        weight = float(counted[rows].sum()) or 1.0
        parts = [partial(loss, part, weight) for part in micro_batches(rows, size, accelerator)]
        return Step(parts, tokens, (number + 1) * batch / len(texts))

    def loss(rows: NDArray[np.int64], weight: float, module: torch.nn.Module) -> list[torch.Tensor]:
        weights = None if texts.weights is None else [texts.weights_of(row) for row in rows]
        given = [texts[row] for row in rows]
        if not given:
            # A process that has no text runs the model all the same, on one that does not count.
            given = [texts[int(texts.lengths.argmax())]]
            weights = [np.zeros(len(given[0]), np.float32)]
        batch = collate(given, accelerator.device, shared=shared, weights=weights)
        return [module(batch) * (1 / weight)]

    remedy = "lower training.learning_rate or train in fp32"
    return Objective(model, TokenLoss(model), what, remedy, step)


def finetune(
    model: PreTrainedModel,
    texts: TokenSet,
    settings: Mapping[str, Any],
    *,
    total: int | None = None,
    seed: int,
    accelerator: Accelerator,
    what: str = "fine-tune",
    state: Path | None = None,
    fingerprint: str = "",
    kept: NDArray[np.bool_] | None = None,
) -> TrainLog:
    """Train the parameters that require a gradient, in place, on the texts.

    AdamW over batches of ``batch_size`` texts and ``total`` steps, by default T = floor(epochs * n
    / batch) for these n texts. ``state`` and ``fingerprint`` are those of ``train``, ``kept`` is
    that of ``examples_of_step``. Raises ``UserError`` when there is nothing to train on or the loss
    is not finite.
    """
    if not (texts.lengths > 1).any():
        raise UserError(f"{what}: no text with a token to predict", do="check the data card")
    if total is None:
        total = steps(len(texts), int(settings["batch_size"]), float(settings["epochs"]))
    warmup = int(settings["warmup_steps"])
    rate, schedule = float(settings["learning_rate"]), settings["schedule"]
    descent = Descent.of(rate, settings, schedule=schedule, warmup=warmup, rise=warmup + 1)
    model.train()
    return train(
        mean_nll(model, texts, settings, seed, accelerator, what, kept),
        descent,
        total,
        accelerator,
        state=state,
        fingerprint=fingerprint,
        checkpoint_seconds=float(settings["checkpoint_seconds"]),
    )
