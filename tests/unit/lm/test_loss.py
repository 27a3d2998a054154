"""The head and its loss: gradients by parts, in the precision of a forward pass and of masters; and
what it holds."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from mamushi.lm import loss

WIDTH, VOCABULARY = 16, 50


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("rows", [7, 2048], ids=["parts", "one part"])
@pytest.mark.parametrize("of_weight", [True, False])
def test_masters_get_the_gradients_of_the_exact_loss(
    rows: int, uniform: bool, of_weight: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "ROWS", rows)
    monkeypatch.setitem(loss.ELEMENTS, "cpu", 3 * VOCABULARY)
    torch.manual_seed(0)
    hidden, weight = torch.randn(20, WIDTH).bfloat16(), torch.randn(VOCABULARY, WIDTH).bfloat16()
    targets = torch.randint(0, VOCABULARY, (20,))
    exact = [x.double().requires_grad_(True) for x in (hidden, weight)]
    (0.3 * functional.cross_entropy(exact[0] @ exact[1].T, targets, reduction="sum")).backward()

    hidden.requires_grad_(True)
    master = weight.float().requires_grad_(True) if of_weight else weight
    with torch.autocast("cpu", torch.bfloat16):
        nll = loss._HeadLoss.apply(hidden, master, None, targets, None, uniform)
    (0.3 * nll.sum()).backward()
    assert master.grad is None or master.grad.dtype == torch.float32
    for found, expected in zip((hidden, master)[: 1 + of_weight], exact, strict=False):
        assert found.grad is not None and expected.grad is not None
        apart = (found.grad.double() - expected.grad).norm()
        assert float(apart) < 0.01 * float(expected.grad.norm())


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("cap", [None, 5.0])
def test_the_logits_of_a_step_are_never_there_as_a_whole(
    cap: float | None, uniform: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "ROWS", 128)
    monkeypatch.setitem(loss.ELEMENTS, "cpu", 2**16)
    rows, vocabulary = 2048, 4096
    head = nn.Linear(WIDTH, vocabulary, bias=False)
    hidden = torch.randn(rows, WIDTH, requires_grad=True)
    targets = torch.randint(0, vocabulary, (rows,))

    def read() -> Tensor:
        return loss._nll_and_gradients(hidden, head.weight, None, targets, cap)[0]

    def train() -> None:
        loss._HeadLoss.apply(hidden, head.weight, None, targets, cap, uniform).sum().backward()

    one_part, whole = 128 * vocabulary * 4, rows * vocabulary * 4
    small = 8 * (head.weight.numel() + hidden.numel()) * 4
    for work in (train, torch.inference_mode()(read)):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
            work()
        events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        peak = np.cumsum([event.nbytes() for event in events]).max()
        # One copy of a part's logits, and of a few of their rows some more.
        assert one_part <= peak <= one_part + 3 * 2**16 * 4 + small
        assert peak < 0.15 * whole
