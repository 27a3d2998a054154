"""What compiling a transformer block leaves of its kernels and bytes: counted on the CPU.

    python benchmarks/fusion.py

The three families with an eighth of their widths and all their heads: what a block takes, forward
and backward, over 32 `posts` in one row, in bf16 by autocast, with the gradient of its input; of a
frozen block and of one that is trained. Eagerly that is every operation that writes memory, and
compiled, as by execution.compile, every call of the code that inductor writes. Attention is in
neither, since it stays what it is. `*_products` are those of matrices, which stay too; the other
kernels are what compiling is for, and `*_bytes_per_value_*` what these read and write, divided by
tokens x width. `*_cpu_seconds_first` is the first step of a model of one such block, compilation
by one process included; `_again` the same with everything in the cache. `loss_*` and, with a
soft-cap, `capped_loss_*` are of the loss and the gradient that takes its logits' place, in bf16.

Kernels of a CPU are counted: autocast has other lists for a GPU, inductor fuses a little
differently for it, and how long any of them takes there is not known.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import tempfile
from typing import Any

import torch
from texts import FULL, TRAINED, drawn
from torch import Tensor
from torch._inductor import compile_fx, metrics
from torch._inductor import config as inductor
from torch._inductor.utils import run_and_get_code
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from mamushi.lm import device as devices
from mamushi.lm import loss as losses
from mamushi.lm.attention import NAME
from mamushi.lm.batches import collate
from mamushi.lm.compiled import CACHE, compiled
from mamushi.lm.loss import TokenLoss, nll_in_place
from mamushi.lm.parameters import freeze
from report import Report, arguments

SMALLER = 8
CPU = torch.device("cpu")
PRODUCTS = ("mm", "addmm", "bmm")
CALL = re.compile(r"^ +(?:\w+ = )?(cpp_fused_\w+|extern_kernels\.\w+|torch\.ops\.\S+?)\(", re.M)


class _Nothing(torch.autograd.Function):
    """Stands for attention, and computes nothing."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, value)
        # (texts, tokens, heads, width of a head), as attention gives it.
        return torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.empty_like(each) for each in ctx.saved_tensors)


def nothing(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    return _Nothing.apply(query, key, value), None


class Counted(TorchDispatchMode):
    """Operations that write memory, and the bytes that they and products read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.found = dict.fromkeys(("kernels", "products", "bytes", "bytes_of_products"), 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if func.is_view or name.startswith(("empty", "new_empty", "_unsafe_view", "detach")):
            return found
        tensors = [t for t in tree_leaves((args, kwargs, found)) if isinstance(t, Tensor)]
        # What is expanded is no more than what is stored.
        size = sum(min(t.numel() * t.itemsize, t.untyped_storage().nbytes()) for t in tensors)
        self.found["kernels"] += 1
        self.found["bytes"] += size
        if name in PRODUCTS:
            self.found["products"] += 1
            self.found["bytes_of_products"] += size
        return found


def small(config: PreTrainedConfig, layers: int) -> PreTrainedConfig:
    """The family with an eighth of its widths, all its heads, and so many blocks."""
    made = copy.deepcopy(config)
    made.head_dim = (
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    ) // SMALLER
    made.hidden_size //= SMALLER
    made.intermediate_size //= SMALLER
    made.vocab_size = 300
    made.num_hidden_layers = layers
    if getattr(made, "layer_types", None):
        made.layer_types = made.layer_types[:layers]
    return made


def model_of(config: PreTrainedConfig, trained: bool) -> PreTrainedModel:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    freeze(model, TRAINED | {"trained_blocks": config.num_hidden_layers})
    if not trained:
        for block in model.model.layers:
            block.requires_grad_(False)
    return devices.place(model, "bf16", CPU)


def step(model: PreTrainedModel) -> None:
    """Forward and backward over one row of texts."""
    texts = drawn("posts", 32, model.config.vocab_size)
    batch = collate([texts[row] for row in range(len(texts))], CPU, shared=True)
    with torch.autocast("cpu", torch.bfloat16):
        loss = TokenLoss(model)(batch)
    loss.backward()


def eager(config: PreTrainedConfig, trained: bool) -> dict[str, int]:
    """Of one block: what the second adds to the first."""
    found = []
    for layers in (1, 2):
        model = model_of(small(config, layers), trained)
        AttentionInterface.register(NAME, nothing)
        with Counted() as counted:
            step(model)
        found.append(counted.found)
    return {name: found[1][name] - found[0][name] for name in found[0]}


def fused(config: PreTrainedConfig, trained: bool) -> tuple[list[str], int, list[float]]:
    """Of one block: the calls of what inductor wrote, the bytes that these read and write, and the
    CPU seconds of the first step, without a cache and with it."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        for again in (False, True):
            torch.compiler.reset()
            model = model_of(small(config, 1), trained)
            # The loss is counted by itself.
            with compiled(model, True):
                losses.nll_in_place = nll_in_place
                AttentionInterface.register(NAME, torch.compiler.disable(nothing))
                if not again:
                    metrics.reset()
                began = sum(os.times()[:4])
                _, codes = run_and_get_code(step, model)
                seconds.append(sum(os.times()[:4]) - began)
            if not again:
                calls = [call for code in codes for call in CALL.findall(code)]
                size = metrics.num_bytes_accessed
    del os.environ[CACHE]
    return calls, size, seconds


def loss(cap: float | None) -> dict[str, tuple[int, float]]:
    """Kernels of the loss and its gradient, and bytes per logit, as they are and compiled."""
    torch.compiler.reset()
    metrics.reset()
    logits, target = torch.randn(64, 4096, dtype=torch.bfloat16), torch.zeros(64, 1).long()
    given = (target, cap, torch.float32, True)
    with Counted() as counted, torch.no_grad():
        nll_in_place(logits.clone(), *given)
    counted.found["kernels"] -= 1  # the copy
    counted.found["bytes"] -= 4 * logits.numel()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ[CACHE] = folder
        way = torch.compile(nll_in_place, dynamic=True)
        _, codes = run_and_get_code(way, logits, *given)
        del os.environ[CACHE]
    size = {"eager": counted.found["bytes"], "compiled": metrics.num_bytes_accessed}
    kernels = {
        "eager": counted.found["kernels"],
        "compiled": sum(len(CALL.findall(code)) for code in codes),
    }
    return {when: (kernels[when], size[when] / logits.numel()) for when in size}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--family", choices=tuple(FULL), nargs="+", default=tuple(FULL))
    args = parser.parse_args()
    torch.set_num_threads(1)
    inductor.compile_threads = 1
    # Bytes are counted where somebody listens.
    listener = logging.getLogger(compile_fx.inductor_metrics_log.name)
    listener.setLevel(logging.INFO)
    listener.addHandler(logging.NullHandler())
    listener.propagate = False
    report = Report("fusion", threads=1)
    tokens = int(drawn("posts", 32, 300).lengths.sum())
    report.value("tokens", tokens)
    for family in args.family:
        values = tokens * small(FULL[family], 1).hidden_size
        for trained in (False, True):
            name = f"{family}_{'trained' if trained else 'frozen'}"
            calls, size, seconds = fused(FULL[family], trained)
            before = eager(FULL[family], trained)
            products = sum(call.startswith("extern_kernels") for call in calls)
            for when, kernels, of_them, whole in (
                ("eager", before["kernels"], before["products"], before["bytes"]),
                ("compiled", len(calls), products, size),
            ):
                report.value(f"{name}_kernels_{when}", kernels)
                report.value(f"{name}_products_{when}", of_them)
                rest = (whole - before["bytes_of_products"]) / values
                report.value(f"{name}_bytes_per_value_{when}", rest)
            report.value(f"{name}_cpu_seconds_first", seconds[0])
            report.value(f"{name}_cpu_seconds_again", seconds[1])
    for name, cap in (("loss", None), ("capped_loss", 30.0)):
        for when, (kernels, size) in loss(cap).items():
            report.value(f"{name}_kernels_{when}", kernels)
            report.value(f"{name}_bytes_per_logit_{when}", size)
    report.write(args.results)


if __name__ == "__main__":
    main()
