"""SalUn's mask against a full sort, and the gradients that it is made of."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from mamushi.lm import device
from mamushi.unlearning.objective import TextLoss
from mamushi.unlearning.saliency import accumulate_gradients, largest
from tests.support.models import model, token_set


def tensors(kind: str, seed: int) -> dict[str, torch.Tensor]:
    """Tensors of several shapes, one of them not contiguous."""
    rng = torch.Generator().manual_seed(seed)
    found = {
        "a": torch.randn(7, 11, generator=rng),
        "b": torch.randn(13, generator=rng),
        "c": torch.randn(5, 6, generator=rng).t(),
        "d": torch.randn(2, 3, 4, generator=rng),
    }
    if kind == "ties":
        return {name: (value * 2).round() / 2 for name, value in found.items()}
    if kind == "zeros":
        return {name: torch.where(value.abs() < 1.2, 0.0, value) for name, value in found.items()}
    if kind == "all zero":
        return {name: -torch.zeros_like(value) for name, value in found.items()}
    if kind == "tiny":
        # Subnormal numbers, and neighbours that differ in the last bit alone.
        close = torch.nextafter(torch.ones(13), torch.full((13,), 2.0))
        return {**found, "a": found["a"] * 1e-42, "b": torch.where(found["b"] > 0, close, -1.0)}
    return found


@pytest.mark.parametrize("kind", ["random", "ties", "zeros", "all zero", "tiny"])
@pytest.mark.parametrize("sparsity", [0.0, 0.29, 0.5, 0.9, 0.999])
def test_masks_are_those_of_a_full_sort(kind: str, sparsity: float) -> None:
    values = tensors(kind, seed=0)
    sizes = np.sort(np.concatenate([v.abs().flatten().numpy() for v in values.values()]))
    least = sizes[len(sizes) * round(sparsity * 1000) // 1000]
    masks = largest(values, sparsity, device.accelerator("fp32"))
    assert list(masks) == list(values)
    for name, mask in masks.items():
        np.testing.assert_array_equal(mask.numpy(), values[name].abs().numpy() >= least)


@pytest.mark.parametrize("micro", [1, 3, 64])
def test_gradients_are_signed_sums_over_all_texts(micro: int) -> None:
    texts = token_set(9)
    found, reference = model("gemma2"), model("gemma2")
    found.train()
    accumulate_gradients(TextLoss(found), texts, micro, device.accelerator("fp32"))
    assert not found.training
    total = torch.zeros(())
    for row in range(len(texts)):
        ids = torch.from_numpy(texts[row].astype(np.int64))[None]
        if ids.shape[1] > 1:
            logits = reference(ids).logits[0, :-1]
            total = total + functional.cross_entropy(logits, ids[0, 1:], reduction="sum")
    (total / int((texts.lengths - 1).sum())).backward()
    expected = {name: p.grad for name, p in reference.named_parameters()}
    for name, parameter in found.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)
