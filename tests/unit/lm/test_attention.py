"""Texts in one row against padded texts: the same loss and the same gradients."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.lm import attention, device, loading
from mamushi.lm.attention import MODELS, Documents, can_share
from mamushi.lm.batches import Batch, batch_of
from mamushi.lm.loss import batch_nll
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet, offsets_of, subset
from tests.support.gradients import exact
from tests.support.models import FAMILIES, TRAINING, VOCABULARY, model, token_set, training_of
from tests.support.steps import step_of
from tests.support.unlearning import BLOCKS

CPU = torch.device("cpu")
# The window of Gemma 2 is 8 here.
LENGTHS = {
    "one text": [13],
    "one token": [1],
    "some of one token": [1, 9, 1, 2, 14, 1],
    "equal": [6, 6, 6],
    "mixed": [14, 3, 8, 9, 1, 20, 11, 5, 14, 2],
}


def texts_of(lengths: list[int]) -> TokenSet:
    tokens = np.random.default_rng(3).integers(0, VOCABULARY, sum(lengths)).astype(np.int32)
    names = np.arange(len(lengths)).astype(str)
    return TokenSet(names, names, tokens, offsets_of(np.array(lengths)))


def batch(texts: TokenSet, shared: bool = True, where: torch.device = CPU) -> Batch:
    return batch_of(texts, np.arange(len(texts)), where, shared=shared)


def padded_by_hand(language_model: PreTrainedModel, texts: TokenSet) -> Tensor:
    """Sum of the NLL by nothing but the model's own padded pass."""
    ids = torch.zeros(len(texts), texts.lengths.max(), dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(texts.lengths):
        ids[row, :length], mask[row, :length] = torch.from_numpy(texts[row]), 1
    logits = language_model(input_ids=ids, attention_mask=mask).logits
    nll = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
    )
    return (nll * mask[:, 1:].flatten()).sum()


def gradients(language_model: PreTrainedModel, total: Tensor) -> dict[str, Tensor]:
    language_model.zero_grad(set_to_none=True)
    total.backward()
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in language_model.named_parameters()
        if p.requires_grad
    }


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.fixture(params=[1.0, 1e12], ids=["many groups", "one group"])
def grouped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attention.CALLS, "cpu", request.param)


def agrees_with_padded_texts(language_model: PreTrainedModel, lengths: list[int]) -> None:
    assert can_share(language_model)
    texts = texts_of(lengths)
    expected = padded_by_hand(language_model, texts)
    of_padded = gradients(language_model, expected)
    assert batch(texts).ids.shape == (1, sum(lengths))
    for uniform in (True, False):
        found = batch_nll(language_model, batch(texts), uniform=uniform).sum()
        assert found.dtype == torch.float64
        assert float(found.detach()) == pytest.approx(float(expected.detach()), rel=1e-12, abs=0)
        assert_equal(gradients(language_model, found), of_padded, 1e-11)


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize(
    ("kind", "case"),
    [
        *((family, case) for family in FAMILIES for case in LENGTHS),
        *((kind, "mixed") for kind in sorted(MODELS - {*FAMILIES})),
    ],
)
def test_loss_and_gradients_equal_those_of_padded_texts(kind: str, case: str) -> None:
    agrees_with_padded_texts(exact(model(kind)), LENGTHS[case])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loss_that_weighs_texts_has_the_gradients_of_padded_texts(family: str) -> None:
    language_model, texts = exact(model(family)), texts_of(LENGTHS["mixed"])
    weights = torch.linspace(-1.0, 2.0, len(texts), dtype=torch.float64)

    def weighed(shared: bool) -> dict[str, Tensor]:
        read = batch(texts, shared)
        sums = read.sums(batch_nll(language_model, read))
        return gradients(language_model, (sums.square() * weights).sum())

    plain = padded_plainly(language_model, texts, weights)
    assert_equal(weighed(True), plain, 1e-10)
    # As an unlearner has it: embeddings and head frozen.
    freeze(language_model, training_of(BLOCKS))
    some = padded_plainly(language_model, texts, weights)
    assert "model.embed_tokens.weight" not in some
    assert_equal(weighed(True), some, 1e-10)


def padded_plainly(
    language_model: PreTrainedModel, texts: TokenSet, weights: Tensor
) -> dict[str, Tensor]:
    each = (subset(texts, np.array([row])) for row in range(len(texts)))
    sums = torch.stack([padded_by_hand(language_model, text) for text in each])
    return gradients(language_model, (sums.square() * weights).sum())


def in_precision(
    dtype: torch.dtype, lengths: list[int], window: int | None, **more: float
) -> list[Tensor]:
    """Attention and its gradients to query, key and value, for the same numbers in each dtype."""
    torch.manual_seed(0)
    tokens = sum(lengths)
    drawn = [torch.randn(1, n, tokens, 16).bfloat16() for n in (9, 3, 3)]
    given = [x.to(dtype).requires_grad_(True) for x in drawn]
    along = torch.randn(1, tokens, 9, 16).bfloat16()
    documents = Documents(np.array(lengths))
    with device.accelerator("bf16" if dtype == torch.bfloat16 else "fp32").autocast():
        out, _ = attention.attend(
            torch.nn.Identity(), *given, None, documents=documents, sliding_window=window, **more
        )
    assert out.dtype == dtype
    return [out.detach(), *torch.autograd.grad(out, given, along.to(dtype))]


@pytest.mark.parametrize("more", [{}, {"softcap": 5.0}], ids=["plain", "capped"])
@pytest.mark.parametrize("window", [None, 6], ids=["all", "window"])
@pytest.mark.parametrize("lengths", [[25, 3, 14, 25, 8], [300, 7, 130]])
def test_half_precision_is_exact_to_its_rounding(
    lengths: list[int], window: int | None, more: dict[str, float]
) -> None:
    """Long texts in the kernel of half precision, short ones in fp32: both as in fp64."""
    both = [
        in_precision(dtype, lengths, window, **more) for dtype in (torch.bfloat16, torch.float64)
    ]
    for found, expected in zip(*both, strict=True):
        scale = float(expected.abs().max())
        assert float((found.double() - expected).abs().max()) <= 0.02 * scale + 1e-6


# --- on a GPU ---------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_for_variable_lengths_agree_with_padded_texts(family: str) -> None:
    gpu = torch.device("cuda")
    language_model, texts = model(family), texts_of(LENGTHS["mixed"])
    expected = gradients(language_model, padded_by_hand(language_model, texts))
    loading.place_model(language_model, "bf16", gpu)
    with device.accelerator("bf16").autocast():
        found = batch_nll(language_model, batch(texts, True, gpu), uniform=True).sum()
    for name, gradient in gradients(language_model, found).items():
        scale = float(expected[name].abs().max())
        assert float((gradient.cpu() - expected[name]).abs().max()) <= 5e-2 * scale, name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_does_not_wait_for_the_gpu(family: str) -> None:
    language_model = model(family)
    freeze(language_model, training_of(TRAINING))
    accelerator = device.accelerator("bf16")
    loading.place_model(language_model, "bf16", accelerator.device)
    step = step_of(language_model, token_set(32), accelerator, micro_batch_size=8)
    step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
