"""What the engine computes and holds, counted: tokens, operations, bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from mamushi.lm import loss

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
