"""What the engine computes and holds, counted: tokens, operations, bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from mamushi.lm import device, loss
from mamushi.lm.embed import embed
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.training import finetune
from mamushi.unlearning.objective import TextLoss
from mamushi.unlearning.saliency import gradients
from tests.support.models import FAMILIES, TRAINING, jigsaw_like, model

TEXTS = jigsaw_like(96)
FP32 = device.accelerator("fp32")


@contextmanager
def computed(language_model: nn.Module) -> Iterator[dict[str, int]]:
    """Within the block, counts the rows that go through linear layers and embeddings, each as the
    mean over these layers; the head apart."""
    rows: dict[nn.Module, int] = {}
    head = language_model.get_output_embeddings()
    layers = [m for m in language_model.modules() if isinstance(m, nn.Linear | nn.Embedding)]

    def add(module: nn.Module, args: tuple[Any, ...], output: torch.Tensor) -> None:
        rows[module] = rows.get(module, 0) + output.numel() // output.shape[-1]

    handles = [layer.register_forward_hook(add) for layer in layers]
    found: dict[str, int] = {}
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
    body = [rows.get(layer, 0) for layer in layers if layer is not head]
    assert len(set(body)) == 1
    found["body"], found["head"] = body[0], rows.get(head, 0)


def _embed(language_model: Any) -> None:
    how = {"pooling": "mean", "layers": [-1], "skip_first": True}
    embed(language_model, TEXTS, **how, batch_tokens=1000, accelerator=FP32)


def _evaluate(language_model: Any) -> None:
    text_nll(language_model, TEXTS, 1000, FP32)


def _train(language_model: Any) -> None:
    freeze(language_model, TRAINING)
    changes = {"batch_size": 32, "micro_batch_size": 16}
    finetune(language_model, TEXTS, TRAINING | changes, total=3, seed=1, accelerator=FP32)


def _saliency(language_model: Any) -> None:
    freeze(language_model, TRAINING | {"train_input_embedding": False, "train_output_head": False})
    gradients(TextLoss(language_model), TEXTS, 16, FP32)


@pytest.mark.parametrize("work", [_train, _embed, _evaluate, _saliency])
@pytest.mark.parametrize("family", FAMILIES)
def test_computed_tokens_per_real_token(family: str, work: Callable[[Any], None]) -> None:
    """Of texts as long as Jigsaw's, of which padding would double the tokens."""
    language_model = model(family)
    language_model.config.max_position_embeddings = 128
    with computed(language_model) as rows:
        work(language_model)
    real = int(TEXTS.lengths.sum())
    assert TEXTS.lengths.max() * len(TEXTS) > 1.9 * TEXTS.lengths.sum()
    assert real <= rows["body"] <= 1.02 * real
    assert rows["head"] <= rows["body"]
    assert (rows["head"] == 0) == (work is _embed)


# --- bytes ------------------------------------------------------------------------------------


def peak_bytes(work: Callable[[], Any]) -> int:
    """The most that ``work`` holds at once beyond what was there."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        work()
    results = found.profiler.kineto_results
    events = [e for e in results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return int(np.cumsum([event.nbytes() for event in events]).max())


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("cap", [None, 5.0])
def test_the_logits_of_a_step_are_never_there_as_a_whole(
    cap: float | None, uniform: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "ROWS", 128)
    monkeypatch.setitem(loss.ELEMENTS, "cpu", 2**16)
    rows, vocabulary, width = 2048, 4096, 16
    head = nn.Linear(width, vocabulary, bias=False)
    hidden = torch.randn(rows, width, requires_grad=True)
    targets = torch.randint(0, vocabulary, (rows,))

    def step() -> None:
        nll = loss._HeadLoss.apply(
            hidden, head.weight, None, targets, head, cap, uniform, torch.is_grad_enabled()
        )
        if nll.requires_grad:
            nll.sum().backward()

    one_part, whole = 128 * vocabulary * 4, rows * vocabulary * 4
    small = 8 * (head.weight.numel() + hidden.numel()) * 4
    for work in (step, torch.inference_mode()(step)):
        peak = peak_bytes(work)
        # One copy of a part's logits, and of a few of their rows some more.
        assert one_part <= peak <= one_part + 3 * 2**16 * 4 + small
        assert peak < 0.15 * whole


# --- waiting for the device -------------------------------------------------------------------
