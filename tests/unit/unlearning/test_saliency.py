"""SalUn's mask against a full sort, the gradients that it is made of, and its random labels."""

import numpy as np
import pytest
import torch

from mamushi.lm import device
from mamushi.unlearning.objective import random_labels
from mamushi.unlearning.saliency import largest


def tensors(kind: str) -> dict[str, torch.Tensor]:
    """Tensors of several shapes, one of them not contiguous."""
    rng = torch.Generator().manual_seed(0)
    values = {
        "a": torch.randn(7, 11, generator=rng),
        "b": torch.randn(13, generator=rng),
        "c": torch.randn(5, 6, generator=rng).t(),
    }
    if kind == "ties":
        return {name: (value * 2).round() / 2 for name, value in values.items()}
    if kind == "zeros":
        return {name: torch.where(value.abs() < 1.2, -0.0, value) for name, value in values.items()}
    if kind == "tiny":
        # Subnormal numbers, and neighbours that differ in the last bit alone.
        close = torch.nextafter(torch.ones(13), torch.full((13,), 2.0))
        return {**values, "a": values["a"] * 1e-42, "b": torch.where(values["b"] > 0, close, -1.0)}
    return values


@pytest.mark.parametrize("kind", ["random", "ties", "zeros", "tiny"])
@pytest.mark.parametrize("sparsity", [0.0, 0.29, 0.5, 0.999])
def test_masks_are_those_of_a_full_sort(kind: str, sparsity: float) -> None:
    values = tensors(kind)
    sizes = np.sort(np.concatenate([v.abs().flatten().numpy() for v in values.values()]))
    least = sizes[len(sizes) * round(sparsity * 1000) // 1000]
    masks = largest(values, sparsity, device.accelerator("fp32"))
    assert list(masks) == list(values)
    for name, mask in masks.items():
        np.testing.assert_array_equal(mask.numpy(), values[name].abs().numpy() >= least)


@pytest.mark.parametrize("there", [np.arange(10), np.array([0, 1, 2, 3, 7, 8])], ids=["all", "gap"])
def test_random_labels_are_uniform_over_the_other_tokens_that_there_are(there: np.ndarray) -> None:
    for true in there[[0, -1]].tolist():
        tokens = np.full(90_000, true, dtype=np.int32)
        labels = random_labels(tokens, there, (), [0, 0, true])
        np.testing.assert_array_equal(labels, random_labels(tokens, there, (), [0, 0, true]))
        assert (random_labels(tokens, there, (), [0, 1, true]) != labels).mean() > 0.5
        counts = np.bincount(labels, minlength=10)[there[there != true]]
        assert counts.sum() == len(labels)
        # Chi-square of at most 8 degrees of freedom: above 26.1 in one of 1000 fair draws.
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 26.1
