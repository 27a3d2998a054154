"""Influence at the weights of a model that somebody else has trained, where there is no training to
measure along.

Adam's second moment, by which its steps divide, is made from the ranked texts: the mean of the
squared gradients of batches as a training would read them. The targets are other texts than those
that are scored: the contamination section's or, where there is none, of either half of the ranked
texts the other half's (cross-fitting). One point takes the place of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.data.groups import GroupCodes
from mamushi.io.domains import FORGET
from mamushi.lm import sharding
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import gradient, mean_nll, prepared
from mamushi.selection.arrays import Doubles
from mamushi.selection.folds import stratified_folds
from mamushi_extras.influence.measuring import (
    STEP,
    Slopes,
    count_predicted,
    divide,
    draw_targets,
)

Targets = Mapping[str, TokenSet]
"""Texts of either domain whose NLL counts."""


def draw_by_fold(
    texts: TokenSet, groups: GroupCodes | None, contamination: TokenSet, most: int, seed: int
) -> tuple[NDArray[np.int16], dict[int, Targets]]:
    """Return the fold (texts,) of each ranked text, and the targets of each fold, at most so many a
    domain: all of fold 0 where the contamination section has texts to be targets, else of either
    fold texts of the other. A group is in one fold. Raises ``UserError`` for too few texts."""
    if len(contamination):
        return np.zeros(len(texts), np.int16), {0: draw_targets(contamination, most, seed)}
    folds = stratified_folds(texts.domains == FORGET, 2, seed, groups)
    others = {fold: subset(texts, np.flatnonzero(folds != fold)) for fold in (0, 1)}
    return folds, {fold: draw_targets(others[fold], most, seed) for fold in others}


def second_moment(
    model: PreTrainedModel,
    texts: TokenSet,
    batches: int,
    training: Mapping[str, Any],
    seed: int,
    accelerator: Accelerator,
) -> list[Tensor]:
    """Return the mean of the squared gradients of ``batches`` of the texts, of each trained
    parameter (its shape; of one that is cut over processes, this process's rows): Adam's second
    moment if all of a training's steps were taken at these weights."""
    objective = mean_nll(model, texts, training, seed, accelerator, "influence")
    module = prepared(objective, accelerator)
    trained = [p for p in model.parameters() if p.requires_grad]
    moment = [torch.zeros_like(sharding.local(p.detach())) for p in trained]
    for number in range(batches):
        gradient(objective, module, objective.step(number), accelerator, trained, False)
        for total, parameter in zip(moment, trained, strict=True):
            if parameter.grad is not None:
                along = sharding.local(parameter.grad)
                total.addcmul_(along, along, value=1 / batches)
                parameter.grad = None
    return moment


def measure_at_weights(
    model: PreTrainedModel,
    texts: TokenSet,
    contamination: TokenSet,
    most: int,
    groups: GroupCodes | None,
    batches: int,
    training: Mapping[str, Any],
    seed: int,
    accelerator: Accelerator,
) -> tuple[Doubles, dict[str, Any]]:
    """Return the influence of every predicted token of the texts on the targets of its fold,
    (predicted,), by ``training.learning_rate``; and what the table says of it, with the ``fold`` of
    each text (texts,), None where there is one.

    Weights are left as they were. Raises ``UserError`` as ``Slopes.slopes``.
    """
    folds, targets = draw_by_fold(texts, groups, contamination, most, seed)
    model.eval()
    moment = second_moment(model, texts, batches, training, seed, accelerator)
    values = np.zeros(count_predicted(texts))
    for fold, of_fold in targets.items():
        scored = folds == fold
        inside = subset(texts, np.flatnonzero(scored))
        meter = Slopes(model, inside, of_fold, accelerator, training)
        meter.accumulate()
        for second, parameter in zip(moment, meter.trained, strict=True):
            if parameter.grad is not None:
                divide(sharding.local(parameter.grad), second.clone(), float(training["epsilon"]))
        rows = np.repeat(scored, texts.counted.astype(np.int64))
        values[rows] = float(training["learning_rate"]) * meter.slopes()
        model.zero_grad(set_to_none=True)
    return values, {
        "fold": folds if len(targets) > 1 else None,
        "batches": batches,
        "targets": {domain: [len(of[domain]) for of in targets.values()] for domain in targets[0]},
        "eps": STEP[accelerator.mixed_precision],
    }
