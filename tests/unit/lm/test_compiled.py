"""Compiled blocks: the same training, one compilation for all numbers of tokens."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import attention, device
from mamushi.lm.batches import collate
from mamushi.lm.compiled import CACHE, CXX, LARGE, compiled
from mamushi.lm.finetune import finetune
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import decoder_blocks, freeze
from tests.support.models import FAMILIES, TRAINING, VOCABULARY, model, token_set

CPU = torch.device("cpu")
STEPS = [[13, 5, 9, 1, 7], [3, 16, 16, 2], [11, 1], [6, 6, 20, 4, 4, 4, 9, 12]]
"""Texts of these lengths: no two steps of as many tokens. Were all of a step's of one length, the
result of attention would be another view, and a block compiled once more."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch.compiler.reset()


def gradients(language_model: PreTrainedModel, lengths: list[int]) -> dict[str, Tensor]:
    """Of the summed loss over texts of these lengths; the loss itself under the name ''."""
    rng = np.random.default_rng(3)
    texts = [rng.integers(0, VOCABULARY, n).astype(np.int32) for n in lengths]
    language_model.zero_grad(set_to_none=True)
    loss = TokenLoss(language_model)(collate(texts, CPU, shared=True))
    loss.backward()
    found = {n: p.grad for n, p in language_model.named_parameters() if p.grad is not None}
    return {name: value.clone() for name, value in found.items()} | {"": loss.detach()}


def trained(family: str) -> PreTrainedModel:
    """In fp64, with the first block frozen."""
    made = model(family).double()
    freeze(made, TRAINING)
    return made.train()


def agree(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.allclose(value, other[name], rtol=0, atol=tolerance * float(value.abs().max()))


def graphs() -> int:
    found: int = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_agree_in_fp64_and_all_steps_share_a_compilation(family: str) -> None:
    language_model = trained(family)
    expected = [gradients(language_model, lengths) for lengths in STEPS]
    with compiled(language_model, True, backend="eager"):
        agree(expected[0], gradients(language_model, STEPS[0]))
        first = graphs()
        for lengths, wanted in zip(STEPS[1:], expected[1:], strict=True):
            agree(wanted, gradients(language_model, lengths))
    assert len(expected[0]) > 10
    assert first > 0
    assert graphs() == first


def test_nothing_stays_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE, raising=False)
    language_model = trained("llama")
    with compiled(language_model, True, backend="eager"):
        folder = Path(os.environ[CACHE])
        # What is loaded from there is nobody else's.
        assert folder.stat().st_mode & 0o077 == 0
        gradients(language_model, STEPS[0])
    assert CACHE not in os.environ
    assert not folder.exists()
    assert AttentionInterface()[attention.NAME] is attention.attend
    before = graphs()
    gradients(language_model.eval(), STEPS[1])
    assert graphs() == before
    with compiled(language_model, False):
        gradients(language_model, STEPS[2])
    assert graphs() == before


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(CXX) is None, reason=f"needs the compiler {CXX}")
def test_a_training_by_the_real_compiler_ends_at_the_same_weights() -> None:
    ends = []
    for wanted in (False, True):
        language_model = model("llama", layers=1).double()
        freeze(language_model, TRAINING | {"trained_blocks": 1})
        finetune(
            language_model,
            token_set(8),
            TRAINING | {"compile": wanted},
            seed=0,
            accelerator=device.accelerator("fp32"),
        )
        ends.append({n: p.detach() for n, p in language_model.named_parameters()})
        assert (graphs() > 0) == wanted
    agree(*ends)


def test_auto_is_for_large_models_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled or not shows in what each block calls."""
    language_model = model("llama")

    def is_compiled() -> bool:
        with compiled(language_model, "auto", backend="eager"):
            return decoder_blocks(language_model)[1][0]._compiled_call_impl is not None

    monkeypatch.setattr(type(language_model), "device", torch.device("cuda"))
    assert not is_compiled()
    monkeypatch.setattr(type(language_model), "num_parameters", lambda self: LARGE)
    assert is_compiled()
    monkeypatch.setattr(type(language_model), "device", torch.device("cpu"))
    assert not is_compiled()


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with (
        pytest.raises(UserError, match=r"no-such-compiler.*set execution\.compile to false"),
        compiled(trained("llama"), True),
    ):
        pass
