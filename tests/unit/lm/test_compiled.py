"""Compiled blocks: the same training, one compilation for all numbers of tokens."""

import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from transformers import AttentionInterface, PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import attention, device, training
from mamushi.lm import compiled as module
from mamushi.lm.batches import collate
from mamushi.lm.compiled import CACHE, CXX, compiled
from mamushi.lm.finetune import finetune, mean_nll
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
    """In fp64, with a block that is frozen and one that is trained."""
    made = model(family, layers=2).double()
    freeze(made, TRAINING | {"trained_blocks": 1})
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


def on_a_gpu(language_model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> PreTrainedModel:
    monkeypatch.setattr(type(language_model), "device", torch.device("cuda"))
    return language_model


@pytest.mark.parametrize(
    ("gpu", "total", "expected"), [(True, 3, True), (True, 2, False), (False, 3, False)]
)
def test_auto_is_for_trainings_on_a_gpu_of_enough_tokens(
    gpu: bool, total: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps times the tokens of the first, so that a run that goes on decides as it did."""
    monkeypatch.setattr(training, "compiled", partial(compiled, backend="eager"))
    language_model, texts = model("llama", layers=1), token_set(8)
    settings = TRAINING | {"compile": "auto", "batch_size": 4, "micro_batch_size": 2}
    freeze(language_model, settings | {"trained_blocks": 1})
    accelerator = device.accelerator("fp32")
    first = mean_nll(language_model, texts, settings, 0, accelerator).step(0).tokens
    monkeypatch.setattr(module, "LONG", 3 * first)
    if gpu:
        on_a_gpu(language_model, monkeypatch)
    log = finetune(language_model, texts, settings, total=total, seed=0, accelerator=accelerator)
    assert log.compiled == expected
    assert decoder_blocks(language_model)[1][0]._compiled_call_impl is None


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_where_compiling_fails_auto_goes_on_without(
    when: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The gradients are those of a model that nobody tried to compile, and what failed is said in
    one line."""
    language_model = trained("gemma2")
    expected = gradients(language_model, STEPS[0])

    def fails(*_: object) -> None:
        raise RuntimeError("no kernel\nand a page of reasons")

    works = make_boxed_func_of
    backend = aot_autograd(
        fw_compiler=fails if when == "forward" else works,
        bw_compiler=fails if when == "backward" else works,
    )
    with (
        pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no kernel"),
        compiled(language_model, True, backend=backend),
    ):
        gradients(language_model, STEPS[0])
    torch.compiler.reset()
    capsys.readouterr()
    with monkeypatch.context() as patch:
        on_a_gpu(language_model, patch)
        with compiled(language_model, "auto", long_enough, backend) as blocks:
            assert blocks
            patch.undo()
            agree(expected, gradients(language_model, STEPS[0]), 1e-12)
            assert not blocks
            agree(expected, gradients(language_model, STEPS[0]), 1e-12)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no kernel" in said


def long_enough() -> int:
    return module.LONG


def make_boxed_func_of(graph: torch.fx.GraphModule, _: object) -> object:
    return make_boxed_func(graph.forward)


@pytest.mark.parametrize("lacks", ["no-such-compiler", "triton"])
def test_without_a_compiler_it_says_so_and_auto_goes_on(
    lacks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", lacks if lacks != "triton" else sys.executable)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    language_model = on_a_gpu(trained("llama"), monkeypatch)
    with (
        pytest.raises(UserError, match=rf"{lacks}.*set execution\.compile to false"),
        compiled(language_model, True),
    ):
        pass
    with compiled(language_model, "auto", long_enough) as blocks:
        assert not blocks
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert lacks in said
