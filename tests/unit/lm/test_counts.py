"""What the engine computes and holds, counted: tokens, operations, bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    Gemma2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from mamushi.lm import attention, device, loss, training
from mamushi.lm.batches import collate
from mamushi.lm.embed import embed
from mamushi.lm.finetune import finetune
from mamushi.lm.loss import batch_nll
from mamushi.lm.parameters import decoder_blocks, freeze
from mamushi.lm.perplexity import text_nll
from mamushi.unlearning.objective import TextLoss
from mamushi.unlearning.relearning import relearn
from mamushi.unlearning.saliency import gradients
from tests.support.models import FAMILIES, TRAINING, jigsaw_like, model, token_set
from tests.support.steps import step_of

TEXTS = jigsaw_like(96)
FP32 = device.accelerator("fp32")


@contextmanager
def computed(language_model: nn.Module) -> Iterator[dict[str, int]]:
    """Within the block, counts the rows that go through linear layers and embeddings, each as the
    mean over these layers; the head apart."""
    rows: dict[nn.Module, int] = {}
    head = language_model.get_output_embeddings()
    layers = [m for m in language_model.modules() if isinstance(m, nn.Linear | nn.Embedding)]

    def add(module: nn.Module, args: tuple[Any, ...], output: torch.Tensor) -> None:
        rows[module] = rows.get(module, 0) + output.numel() // output.shape[-1]

    handles = [layer.register_forward_hook(add) for layer in layers]
    found: dict[str, int] = {}
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
    body = [rows.get(layer, 0) for layer in layers if layer is not head]
    assert len(set(body)) == 1
    found["body"], found["head"] = body[0], rows.get(head, 0)


def _embed(language_model: Any) -> None:
    how = {"pooling": "mean", "layers": [-1], "skip_first": True}
    embed(language_model, TEXTS, **how, batch_tokens=1000, accelerator=FP32)


def _evaluate(language_model: Any) -> None:
    text_nll(language_model, TEXTS, 1000, FP32)


def _train(language_model: Any) -> None:
    freeze(language_model, TRAINING)
    changes = {"batch_size": 32, "micro_batch_size": 16}
    finetune(language_model, TEXTS, TRAINING | changes, total=3, seed=1, accelerator=FP32)


def _saliency(language_model: Any) -> None:
    freeze(language_model, TRAINING | {"train_input_embedding": False, "train_output_head": False})
    gradients(TextLoss(language_model), TEXTS, 16, FP32)


def _relearn(language_model: Any) -> None:
    settings = {"learning_rate": 1e-4, "batch_size": 96, "steps": [1]}
    relearn(language_model, TEXTS, TEXTS, settings, seed=1, accelerator=FP32, batch_tokens=1000)


@pytest.mark.parametrize("work", [_train, _embed, _evaluate, _saliency, _relearn])
@pytest.mark.parametrize("family", FAMILIES)
def test_computed_tokens_per_real_token(family: str, work: Callable[[Any], None]) -> None:
    """Of texts as long as Jigsaw's, of which padding would double the tokens."""
    language_model = model(family)
    language_model.config.max_position_embeddings = 128
    with computed(language_model) as rows:
        work(language_model)
    real = int(TEXTS.lengths.sum()) * (3 if work is _relearn else 1)
    assert TEXTS.lengths.max() * len(TEXTS) > 1.9 * TEXTS.lengths.sum()
    assert real <= rows["body"] <= 1.02 * real
    assert rows["head"] <= rows["body"]
    assert (rows["head"] == 0) == (work is _embed)


# --- operations -------------------------------------------------------------------------------

SIZES = {
    "vocab_size": 3000,
    "hidden_size": 384,
    "intermediate_size": 1344,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
CONFIGS: dict[str, Callable[..., PreTrainedConfig]] = {
    "llama": lambda **sizes: LlamaConfig(**sizes, tie_word_embeddings=False),
    "qwen2": lambda **sizes: Qwen2Config(**sizes, tie_word_embeddings=False),
    "gemma2": lambda **sizes: Gemma2Config(**sizes, head_dim=64),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_of_a_step_are_those_of_the_formula(family: str) -> None:
    """Forward 2N a token, 2N for gradients with respect to inputs through the frozen trunk, and 2
    for each weight that is trained; the formula leaves out attention's own products."""
    torch.manual_seed(0)
    language_model = AutoModelForCausalLM.from_config(CONFIGS[family](**SIZES))
    freeze(language_model, TRAINING | {"trained_blocks": 3})
    texts = jigsaw_like(8, seed=4)
    tokens = int(texts.lengths.sum())
    step = step_of(language_model, texts, FP32, micro_batch_size=8)
    with FlopCounterMode(display=False) as counter:
        step()
    blocks = decoder_blocks(language_model)[1]
    matrices = [sum(p.numel() for p in block.parameters() if p.ndim > 1) for block in blocks]
    head = language_model.get_output_embeddings().weight.numel()
    # A text's last token predicts nothing, so that the head does not see it.
    head_tokens = tokens - len(texts)
    formula = tokens * (4 * sum(matrices) + 2 * sum(matrices[-3:])) + head_tokens * 6 * head
    assert formula <= counter.get_total_flops() <= 1.05 * formula


def test_a_frozen_head_is_not_computed_twice() -> None:
    torch.manual_seed(0)
    language_model = AutoModelForCausalLM.from_config(CONFIGS["llama"](**SIZES))
    frozen = {"train_input_embedding": False, "train_output_head": False, "trained_blocks": 0}
    freeze(language_model, TRAINING | frozen)
    language_model.model.norm.weight.requires_grad_(True)
    batch = collate([TEXTS[i] for i in range(4)], torch.device("cpu"), shared=True)
    with FlopCounterMode(display=False, depth=None) as counter:
        batch.sums(batch_nll(language_model, batch)).square().sum().backward()
    products = counter.get_flop_counts()["Global"][torch.ops.aten.mm]
    blocks = decoder_blocks(language_model)[1]
    weights = sum(p.numel() for p in blocks.parameters() if p.ndim > 1)
    head = language_model.get_output_embeddings().weight.numel()
    assert products == 2 * int(batch.lengths.sum()) * weights + 4 * len(batch.targets) * head


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


def test_scores_between_texts_are_never_there(monkeypatch: pytest.MonkeyPatch) -> None:
    language_model = model("gemma2", layers=1)
    texts = [np.full(8, 3, dtype=np.int32) for _ in range(256)]
    batch = collate(texts, torch.device("cpu"), shared=True)
    peak = peak_bytes(lambda: batch_nll(language_model, batch).sum().backward())
    assert peak < 2048 * 2048 * 2 * 4 / 4


# --- waiting for the device -------------------------------------------------------------------


ASKING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")
"""Operations whose result the host must know: on a GPU, it would wait for them."""


class Operations(TorchDispatchMode):
    """Collects operations, what they are given and what they give."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[Any, ...], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.found.append((func.overloadpacket.__name__, args, result))
        return result

    @property
    def waits(self) -> list[str]:
        """Names of those that ask, or take by a mask."""
        return [
            name
            for name, args, _ in self.found
            if name.startswith(ASKING)
            or (name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1]))
        ]


def step_in(family: str, precision: str) -> tuple[PreTrainedModel, Callable[[], torch.Tensor]]:
    """A model, and a step of it in micro-batches."""
    language_model = model(family)
    freeze(language_model, TRAINING)
    accelerator = device.accelerator(precision)
    device.place(language_model, precision, accelerator.device)
    return language_model, step_of(
        language_model, TEXTS, accelerator, batch_size=32, micro_batch_size=8
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_asks_nothing_of_the_device(family: str, precision: str) -> None:
    _, step = step_in(family, precision)
    with Operations() as control:
        float(torch.ones(1) + 1)
    assert control.waits
    with Operations() as operations:
        step()
    assert operations.waits == []


def test_groups_pad_little_within_attention() -> None:
    """The places that attention computes for a real token, at a real model's width."""
    calls = attention.CALLS["cpu"] / 4096
    for seed in range(20):
        lengths = jigsaw_like(32, seed).lengths
        found = attention._grouped(lengths, calls, torch.device("cpu"))
        assert len(found.source) <= 1.35 * lengths.sum()


@pytest.mark.parametrize("family", FAMILIES)
def test_trained_weights_are_cast_once_a_step(family: str) -> None:
    language_model, step = step_in(family, "bf16")
    trained = {p.data_ptr(): 0 for p in language_model.parameters() if p.requires_grad}
    embedding = language_model.get_input_embeddings().weight.data_ptr()
    with Operations() as operations:
        step()
    for name, args, result in operations.found:
        if name == "_to_copy" and result.dtype == torch.bfloat16:
            place = args[0].data_ptr()
            trained |= {place: trained[place] + 1} if place in trained else {}
    head = language_model.get_output_embeddings().weight.data_ptr()
    assert trained[head] == 1
    assert {times for place, times in trained.items() if place != embedding} <= {0, 1}


def test_casts_that_are_kept_change_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradients_of_a_step() -> list[torch.Tensor]:
        language_model, step = step_in("llama", "bf16")
        step()
        return [p.grad for p in language_model.parameters() if p.grad is not None]

    kept = gradients_of_a_step()
    monkeypatch.setattr(training, "_cast_once", nullcontext)
    assert all(map(torch.equal, kept, gradients_of_a_step()))


def test_no_pass_over_the_logits_does_nothing_but_cast() -> None:
    """From bf16 and back the casts go with what is computed; what is left are 26 bytes a logit."""
    logits, targets = torch.randn(40, 5000).bfloat16(), torch.randint(0, 5000, (40, 1))
    with Operations() as operations:
        loss.nll_in_place(logits, targets, None, torch.float32, True)
    casts = ("_to_copy", "copy_")
    assert not [
        args for name, args, _ in operations.found if name in casts and args[0].numel() > 64
    ]
    moved = 0
    for name, args, result in operations.found:
        if name in ("sub", "amax", "exp_", "sum", "div") and args[0].numel() == logits.numel():
            moved += args[0].nbytes + (result.nbytes if result.numel() == logits.numel() else 0)
    assert moved == 26 * logits.numel()


def test_the_norm_is_taken_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each step where it clips, else of the first, each 50th after it and the last."""
    taken, norm = [], nn.utils.get_total_norm
    spy = lambda *given: taken.append(1) or norm(*given)  # noqa: E731
    monkeypatch.setattr(nn.utils, "get_total_norm", spy)

    def steps(**changes: Any) -> list[int]:
        taken.clear()
        language_model = model("llama")
        freeze(language_model, TRAINING)
        settings = TRAINING | {"batch_size": 2} | changes
        how = {"total": 53, "seed": 1, "accelerator": FP32}
        log = finetune(language_model, token_set(12), settings, **how).columns
        return [step for step, n in zip(log["step"], log["gradient_norm"], strict=True) if n]

    assert steps() == [1, 51, 53] and len(taken) == 3
    assert steps(gradient_clip=1.0) == [*range(1, 54)] and len(taken) == 53
