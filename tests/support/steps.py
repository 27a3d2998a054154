"""One step of a fine-tune, and kills between steps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from accelerate import Accelerator
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.lm import training
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import mean_nll_objective
from tests.support.models import training_of


class Killed(Exception):
    """Stands for a kill between two steps."""


def kill_at(
    monkeypatch: pytest.MonkeyPatch, call: int, error: type[Exception] = Killed
) -> list[int]:
    """Kill the training that computes a gradient for the ``call``-th time; an entry for each."""
    computed: list[int] = []
    gradient = training.gradient

    def killed(*given: Any) -> Tensor:
        computed.append(1)
        if len(computed) == call:
            raise error("killed")
        return gradient(*given)

    monkeypatch.setattr(training, "gradient", killed)
    return computed


def step_of(
    language_model: PreTrainedModel, texts: TokenSet, accelerator: Accelerator, **sizes: int
) -> Callable[[], Tensor]:
    """Computes the gradient of a step of all texts, or of a ``batch_size``, in micro-batches of a
    ``micro_batch_size``; gives its loss and the gradient's norm."""
    settings = training_of({"batch_size": len(texts), **sizes})
    micro = sizes["micro_batch_size"]
    objective = mean_nll_objective(language_model, texts, settings, micro, 0, accelerator)
    module = accelerator.prepare_model(objective.module, evaluation_mode=True)
    trained = [p for p in language_model.parameters() if p.requires_grad]
    return partial(training.gradient, objective, module, objective.step(0), accelerator, trained)
