"""Texts in one row against padded texts: the same loss and the same gradients."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM, GPTJConfig, PreTrainedModel

from mamushi.lm import attention, device
from mamushi.lm.attention import MODELS, Documents, supports
from mamushi.lm.batches import collate
from mamushi.lm.loss import batch_nll
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.training import finetune
from tests.support.gradients import exact
from tests.support.models import FAMILIES, TRAINING, VOCABULARY, model, token_set
from tests.support.steps import step_of

CPU = torch.device("cpu")
# The window of Gemma 2 is 8 here.
LENGTHS = {
    "one text": [13],
    "one token": [1],
    "some of one token": [1, 9, 1, 2, 14, 1],
    "equal": [6, 6, 6],
    "mixed": [14, 3, 8, 9, 1, 20, 11, 5, 14, 2],
}


def texts_of(lengths: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, VOCABULARY, n).astype(np.int32) for n in lengths]


def padded_by_hand(language_model: PreTrainedModel, texts: list[np.ndarray]) -> Tensor:
    """Sum of the NLL by nothing but the model's own padded pass."""
    longest = max(map(len, texts))
    ids = torch.zeros(len(texts), longest, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = torch.from_numpy(text), 1
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
    assert supports(language_model)
    texts = texts_of(lengths)
    expected = padded_by_hand(language_model, texts)
    of_padded = gradients(language_model, expected)
    batch = collate(texts, CPU, shared=True)
    assert batch.ids.shape == (1, sum(lengths))
    for uniform in (True, False):
        found = batch_nll(language_model, batch, uniform=uniform).sum()
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
        batch = collate(texts, CPU, shared=shared)
        sums = batch.sums(batch_nll(language_model, batch))
        return gradients(language_model, (sums.square() * weights).sum())

    plain = padded_plainly(language_model, texts, weights)
    assert_equal(weighed(True), plain, 1e-10)
    # As an unlearner has it: embeddings and head frozen.
    freeze(language_model, TRAINING | {"train_input_embedding": False, "train_output_head": False})
    some = padded_plainly(language_model, texts, weights)
    assert "model.embed_tokens.weight" not in some
    assert_equal(weighed(True), some, 1e-10)


def padded_plainly(
    language_model: PreTrainedModel, texts: list[np.ndarray], weights: Tensor
) -> dict[str, Tensor]:
    sums = torch.stack([padded_by_hand(language_model, [text]) for text in texts])
    return gradients(language_model, (sums.square() * weights).sum())


def test_other_types_are_padded_and_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    attention._supports.cache_clear()
    config = GPTJConfig(
        vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=64, rotary_dim=4
    )
    torch.manual_seed(0)
    language_model, texts = AutoModelForCausalLM.from_config(config).eval(), token_set(9)
    found = [text_nll(language_model, texts, 40, device.accelerator("fp32")).nll for _ in range(2)]
    rows = [texts[i] for i in range(len(texts))]
    expected = [float(padded_by_hand(language_model, [row]).detach()) for row in rows]
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-5, atol=1e-5)
    assert capsys.readouterr().err.count("gptj: texts are padded") == 1


def test_a_model_of_another_library_and_one_that_looks_ahead_are_padded() -> None:
    class Own(type(model("llama"))):  # type: ignore[misc]
        pass

    assert not supports(Own(model("llama").config))
    ahead = model("gemma2")
    ahead.config.use_bidirectional_attention = True
    assert not supports(ahead)


def in_precision(
    dtype: torch.dtype,
    lengths: list[int],
    heads: tuple[int, int],
    window: int | None,
    **more: float,
) -> list[Tensor]:
    """Attention and its gradients to query, key and value, for the same numbers in each dtype."""
    torch.manual_seed(0)
    tokens = sum(lengths)
    drawn = [torch.randn(1, n, tokens, 16).bfloat16() for n in (heads[0], heads[1], heads[1])]
    given = [x.to(dtype).requires_grad_(True) for x in drawn]
    along = torch.randn(1, tokens, heads[0], 16).bfloat16()
    documents = Documents(np.array(lengths))
    with device.accelerator("bf16" if dtype == torch.bfloat16 else "fp32").autocast():
        out, _ = attention.attend(
            torch.nn.Identity(), *given, None, documents=documents, sliding_window=window, **more
        )
    assert out.dtype == dtype
    return [out.detach(), *torch.autograd.grad(out, given, along.to(dtype))]


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize("more", [{}, {"softcap": 5.0}], ids=["plain", "capped"])
@pytest.mark.parametrize("window", [None, 6], ids=["all", "window"])
@pytest.mark.parametrize("heads", [(2, 2), (9, 3)], ids=["as many keys", "shared keys"])
@pytest.mark.parametrize("lengths", [[1], [25, 3, 14, 25, 8], [300, 7, 130]])
def test_half_precision_is_exact_to_its_rounding(
    lengths: list[int], heads: tuple[int, int], window: int | None, more: dict[str, float]
) -> None:
    """Long texts in the kernel of half precision, short ones in fp32: both as in fp64."""
    both = [
        in_precision(dtype, lengths, heads, window, **more)
        for dtype in (torch.bfloat16, torch.float64)
    ]
    for found, expected in zip(*both, strict=True):
        scale = float(expected.abs().max())
        assert float((found.double() - expected).abs().max()) <= 0.02 * scale + 1e-6


# --- groups -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.floats(1.0, 1e4))
def test_groups_cover_the_row_at_the_least_cost(lengths: list[int], calls: float) -> None:
    found = attention._grouped(np.array(lengths), calls, CPU)
    assert 1 <= len(found.shapes) <= attention.GROUPS
    assert sum(texts for texts, _ in found.shapes) == len(lengths)
    assert len(found.source) == sum(texts * length for texts, length in found.shapes)
    # Each token comes back from where it went, and padding is of the text that it pads.
    assert torch.equal(found.source[found.back], torch.arange(sum(lengths)))
    text = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    start = 0
    for texts, length in found.shapes:
        rows = text[found.source[start : start + texts * length]].view(texts, length)
        assert (rows == rows[:, :1]).all()
        start += texts * length

    def cost(groups: list[list[int]]) -> float:
        return sum(len(group) * max(group) ** 2 + calls for group in groups)

    ordered = sorted(lengths, reverse=True)
    mine, place = [], 0
    for texts, length in found.shapes:
        mine.append(ordered[place : place + texts])
        assert max(mine[-1]) == length
        place += texts
    halves = [[ordered]] + [[ordered[:i], ordered[i:]] for i in range(1, len(ordered))]
    assert cost(mine) <= min(map(cost, halves)) * (1 + 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_equal_runs_give_equal_bits(family: str, precision: str) -> None:
    def weights() -> list[Tensor]:
        language_model = model(family)
        freeze(language_model, TRAINING)
        accelerator = device.accelerator(precision)
        device.place(language_model, precision, accelerator.device)
        finetune(language_model, token_set(), TRAINING, total=5, seed=1, accelerator=accelerator)
        return [p.detach() for p in language_model.parameters()]

    assert all(map(torch.equal, weights(), weights()))


def plain_kernel(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    offsets: Tensor,
    also_offsets: Tensor,
    longest: int,
    also_longest: int,
    *,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,
) -> Tensor:
    """What `torch.nn.attention.varlen` documents that it computes, one text after another."""
    assert offsets.dtype == torch.int32 and int(offsets.diff().max()) == longest == also_longest
    assert offsets is also_offsets and enable_gqa
    left, right = window_size
    found = []
    for begin, end in pairwise(offsets.tolist()):
        one, two, three = (x[begin:end].transpose(0, 1) for x in (q, k, v))
        distance = torch.arange(end - begin)[:, None] - torch.arange(end - begin)[None, :]
        seen = (distance >= -right) & ((distance <= left) | (left < 0))
        groups = len(one) // len(two)
        two, three = two.repeat_interleave(groups, 0), three.repeat_interleave(groups, 0)
        scores = (one @ two.transpose(1, 2) * scale).masked_fill(~seen, -torch.inf)
        found.append((scores.softmax(-1) @ three).transpose(0, 1))
    return torch.cat(found)


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_the_kernel_is_given_what_it_documents(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_half", lambda query: query.dtype)
    monkeypatch.setattr(attention, "_kernel", lambda _: plain_kernel)
    agrees_with_padded_texts(exact(model(kind)), LENGTHS["mixed"])


# --- on a GPU ---------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_for_variable_lengths_agree_with_padded_texts(family: str) -> None:
    gpu = torch.device("cuda")
    language_model, texts = model(family), texts_of(LENGTHS["mixed"])
    expected = gradients(language_model, padded_by_hand(language_model, texts))
    device.place(language_model, "bf16", gpu)
    with device.accelerator("bf16").autocast():
        found = batch_nll(language_model, collate(texts, gpu, shared=True), uniform=True).sum()
    for name, gradient in gradients(language_model, found).items():
        scale = float(expected[name].abs().max())
        assert float((gradient.cpu() - expected[name]).abs().max()) <= 5e-2 * scale, name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_does_not_wait_for_the_gpu(family: str) -> None:
    language_model = model(family)
    freeze(language_model, TRAINING)
    accelerator = device.accelerator("bf16")
    device.place(language_model, "bf16", accelerator.device)
    step = step_of(language_model, token_set(32), accelerator, micro_batch_size=8)
    step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
