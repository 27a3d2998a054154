"""The head and its loss: gradients by parts, in the precision of a forward pass and of masters; and
what it holds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from mamushi.lm import loss

ROWS, WIDTH, VOCABULARY = 20, 16, 50


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    hidden, weight = torch.randn(ROWS, WIDTH), torch.randn(VOCABULARY, WIDTH)
    return hidden.bfloat16(), weight.bfloat16(), torch.randint(0, VOCABULARY, (ROWS,))


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("rows", [7, 2048], ids=["parts", "one part"])
@pytest.mark.parametrize("of_weight", [True, False])
def test_masters_get_the_gradients_of_the_exact_loss(
    rows: int, uniform: bool, of_weight: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "ROWS", rows)
    monkeypatch.setitem(loss.ELEMENTS, "cpu", 3 * VOCABULARY)
    hidden, weight, targets = drawn()
    one, two = (x.double().requires_grad_(True) for x in (hidden, weight))
    (0.3 * functional.cross_entropy(one @ two.T, targets, reduction="sum")).backward()

    head = nn.Linear(WIDTH, VOCABULARY, bias=False).requires_grad_(of_weight)
    head.weight.data = weight.float() if of_weight else weight
    given = hidden.clone().requires_grad_(True)
    with torch.autocast("cpu", torch.bfloat16):
        nll = loss._HeadLoss.apply(given, head.weight, None, targets, head, None, uniform, True)
    (0.3 * nll.sum()).backward()
    assert one.grad is not None and two.grad is not None and given.grad is not None
    assert float((given.grad.double() - one.grad).norm()) < 0.01 * float(one.grad.norm())
    assert (head.weight.grad is not None) == of_weight
    if head.weight.grad is not None:
        assert head.weight.grad.dtype == torch.float32
        error = (head.weight.grad.double() - two.grad).norm()
        assert float(error) < 0.01 * float(two.grad.norm())


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
