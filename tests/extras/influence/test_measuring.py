"""Influence by two forward passes, against gradients of single tokens and texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.config.sections import Execution
from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm import device, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import minimize_nll
from mamushi_extras.influence.measuring import (
    STEP,
    InfluenceMeter,
    draw_targets,
)
from tests.support.gradients import exact
from tests.support.models import TRAINING, model, token_set, training_of
from tests.support.processes import in_two_processes

HOW = TRAINING | {"train_input_embedding": False}
EXECUTION = Execution(batch_tokens=64, micro_batch_size=2)
BEGIN: dict[str, Any] = {"micro_batch_size": 2, "seed": 1}


def no_padding(texts: TokenSet) -> TokenSet:
    """Without token 0, which pads for Gemma: autograd gives its row no gradient as an input."""
    return replace(texts, tokens=np.maximum(texts.tokens, 1))


TEXTS, OTHERS = no_padding(token_set(14)), no_padding(token_set(20, seed=1))
TARGETS = draw_targets(OTHERS, 6, 0)
POINTS = [2, 4]


class Compared(InfluenceMeter):
    """Computes beside it what it should be, from gradients of single tokens, unless in bf16."""

    reference: np.ndarray[Any, Any] | float = 0.0

    def updated(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        if step in self.points and self.accelerator.mixed_precision == "no":
            self.reference = self.reference + slopes(self.model, self.texts, optimizer)
        super().updated(step, optimizer)


def nll(language_model: PreTrainedModel, tokens: np.ndarray[Any, Any]) -> Tensor:
    """By transformers' own forward pass of one text (tokens - 1,)."""
    ids = torch.from_numpy(tokens.astype(np.int64))[None]
    return functional.cross_entropy(
        language_model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :-1],
        ids[0, 1:],
        reduction="none",
    )


def flat(values: Any) -> Tensor:
    return torch.cat([value.flatten() for value in values])


def gradient_of(language_model: PreTrainedModel, loss: Tensor, *, again: bool = False) -> Tensor:
    trained = [p for p in language_model.parameters() if p.requires_grad]
    return flat(torch.autograd.grad(loss, trained, retain_graph=again))


def slopes(
    language_model: PreTrainedModel,
    texts: TokenSet,
    optimizer: torch.optim.Optimizer,
) -> np.ndarray[Any, Any]:
    """Of each predicted token the rate times its gradient's inner product with the direction, which
    is made from the gradients of single targets."""
    language_model.eval()
    means = {}
    for domain, target in TARGETS.items():
        of_texts = [
            gradient_of(language_model, nll(language_model, target[row]).sum())
            for row in range(len(target))
        ]
        means[domain] = torch.stack(of_texts).sum(0) / float((target.lengths - 1).sum())
    trained = [p for p in language_model.parameters() if p.requires_grad]
    states = [optimizer.state[p] for p in trained]
    second = flat(s["exp_avg_sq"] / (1 - 0.999 ** float(s["step"])) for s in states)
    along = (means[FORGET] - means[RETAIN]) / (second.sqrt() + 1e-8)
    along[second == 0] = 0
    found = []
    for row in range(len(texts)):
        losses = nll(language_model, texts[row]) if len(texts[row]) > 1 else []
        found += [float(gradient_of(language_model, x, again=True) @ along) for x in losses]
    return optimizer.param_groups[0]["lr"] * np.array(found)


def measured(
    language_model: PreTrainedModel,
    folder: Path,
    kind: type[InfluenceMeter] = Compared,
    total: int = 4,
    **changes: Any,
) -> Any:
    """The meter of a training, of a model that is cut over the processes where there are two."""
    training, points = training_of(HOW | changes), [step for step in POINTS if step <= total]
    freeze(language_model, training)
    accelerator = device.accelerator(training.precision)
    sharding.shard(language_model, accelerator)
    how = (language_model, TEXTS, TARGETS, accelerator, training, EXECUTION)
    meter = kind(*how, points=points, checkpoint=beside(folder))
    # Two passes over so many make so many steps.
    begin = {**BEGIN, "examples": 2 * total, "accelerator": accelerator}
    minimize_nll(language_model, TEXTS, training, **begin, updated=meter.updated)
    return meter


def beside(folder: Path, fingerprint: str = "run") -> Checkpoint:
    """Beside which a meter writes down what it has measured."""
    return Checkpoint(folder / "out.state", fingerprint, 1e9)


def apart(found: np.ndarray[Any, Any], expected: Any) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
def test_it_is_the_slope_of_each_tokens_loss(family: str, tmp_path: Path) -> None:
    meter = measured(exact(model(family)), tmp_path)
    assert meter.steps == POINTS
    assert apart(meter.total, meter.reference) < 1e-3


def test_the_training_is_not_changed_by_it(tmp_path: Path) -> None:
    watched, alone = model("llama"), model("llama")
    measured(watched, tmp_path)
    freeze(alone, training_of(HOW))
    accelerator = device.accelerator("fp32")
    begin = {**BEGIN, "examples": 8, "accelerator": accelerator}
    minimize_nll(alone, TEXTS, training_of(HOW), **begin)
    for one, another in zip(watched.parameters(), alone.parameters(), strict=True):
        assert torch.equal(one, another)


def test_it_is_near_in_half_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a longer step, since a short one is lost in rounding."""
    changes = {"precision": "bf16", "learning_rate": 1e-3}
    whole = measured(model("llama"), tmp_path, learning_rate=1e-3)
    suited = measured(model("llama"), tmp_path, **changes)
    monkeypatch.setitem(STEP, "bf16", 3e-4)
    short = measured(model("llama"), tmp_path, **changes)
    assert (whole.eps, suited.eps) == (3e-4, 3e-3)
    total = whole.total
    assert np.corrcoef(suited.total, total)[0, 1] > 0.9
    assert apart(suited.total, total) < 0.5 * apart(short.total, total)


def test_without_what_was_measured_a_training_does_not_go_on(tmp_path: Path) -> None:
    meter, state = measured(model("llama"), tmp_path), tmp_path / "out.state"
    state.touch()

    def restored(fingerprint: str) -> InfluenceMeter:
        how = (meter.model, TEXTS, TARGETS, meter.accelerator, training_of(HOW), EXECUTION)
        other = InfluenceMeter(*how, points=POINTS, checkpoint=beside(tmp_path, fingerprint))
        other.restore()
        return other

    again = restored("run")
    assert again.steps == POINTS and (again.total == meter.total).all() and state.exists()
    assert restored("another run").steps == [] and not state.exists()


SHARDED = """
import sys
from pathlib import Path
from tests.extras.influence.test_measuring import InfluenceMeter, measured, model

measured(model("llama"), Path(sys.argv[1]), InfluenceMeter, 2, learning_rate=1e-3)
"""


def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    in_two_processes(tmp_path, SHARDED, tmp_path)
    (tmp_path / "alone").mkdir()
    alone = measured(model("llama"), tmp_path / "alone", InfluenceMeter, 2, learning_rate=1e-3)
    # Losses differ by their last bits in fp32, and a step of a thousandth makes more of these.
    assert apart(load_file(tmp_path / "out.points")["total"], alone.total) < 1e-2
