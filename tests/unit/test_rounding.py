"""Weights of a few bits: against the definition, one weight after another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mamushi.lm import tiny
from mamushi.lm.parameters import decoder_blocks
from tests.support.models import SIZES


@pytest.fixture
def rounding(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import rounding

    return rounding


def by_hand(row: list[float], bits: int, group: int) -> list[float]:
    levels, found = 2 ** (bits - 1) - 1, []
    for start in range(0, len(row), group):
        part = row[start : start + group]
        scale = float(np.float32(max(map(abs, part))) / np.float32(levels))
        for value in part:
            step = float(np.float32(value) / np.float32(scale)) if scale else 0.0
            whole = math.floor(step + 0.5)
            if step + 0.5 == whole and whole % 2:
                whole -= 1
            found.append(whole * scale)
    return found


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("width", [64, 40, 150])
def test_weights_are_rounded_group_by_group(rounding: Any, bits: int, width: int) -> None:
    weight = torch.from_numpy(np.random.default_rng(0).normal(0, 0.02, (5, width)).astype("f4"))
    weight[1] = 0.0
    weight[2, 0] = 1.0
    found = rounding.rounded(weight, bits)
    expected = [by_hand(row, bits, rounding.GROUP) for row in weight.tolist()]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-9)
    assert len(found[0, : rounding.GROUP].unique()) <= 2**bits - 1
    assert torch.equal(rounding.rounded(found, bits), found) or bits == 8
    assert torch.equal(
        rounding.rounded(weight.bfloat16(), bits),
        rounding.rounded(weight.bfloat16().float(), bits).bfloat16(),
    )
    scale = weight[0, : rounding.GROUP].abs().max() / (2 ** (bits - 1) - 1)
    assert (found - weight)[0, : rounding.GROUP].abs().max() <= 0.501 * scale


def test_a_model_computes_with_rounded_weights_and_is_itself_afterwards(rounding: Any) -> None:
    model, _ = tiny.build({"family": "llama", **SIZES}, ["the cat sat on a mat"], 0)
    model.eval()
    ids = torch.arange(6)[None]
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.inference_mode():
        plain = model(ids).logits
        with rounding.rounding(model, 4) as matrices:
            found = model(ids).logits
        assert torch.equal(model(ids).logits, plain)
        with pytest.raises(KeyError), rounding.rounding(model, 4):
            raise KeyError
        assert torch.equal(model(ids).logits, plain)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    # The same by hand: other weights in the blocks' matrices, and nowhere else.
    inside = f"{decoder_blocks(model)[0]}."
    matrices_of = [n for n, p in model.named_parameters() if n.startswith(inside) and p.ndim == 2]
    assert matrices == len(matrices_of) > 0
    for name, parameter in model.named_parameters():
        if name in matrices_of:
            parameter.data = rounding.rounded(parameter.data, 4)
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, found)
    assert not torch.equal(found, plain)
