"""The head and its loss: gradients by parts, in the precision of a forward pass and of masters."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

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
