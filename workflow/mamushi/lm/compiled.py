"""Blocks compiled by ``torch.compile`` for the steps of a training, and for nothing else.

What a GPU gains is fewer launches and fewer passes over memory for norms, rotations, activations
and residuals; products and attention stay the kernels that they are. A block is compiled once with
the number of tokens left open, because no two steps have the same and padding to a few sizes would
be computed for nothing. Blocks share the code, so that a model of 32 takes no longer than one of 4.

Attention stands outside: it reads where texts end on the host, which a compiler would take for
constants. So do the product of the head, and the last norm, which is one of dozens. The loss is
compiled as it stands in ``loss``: passes over logits, with the gradient in their place.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._functorch import config as functorch
from transformers import AttentionInterface, PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.attention import NAME, attend
from mamushi.lm.loss import by_hand, computed_by, for_a_compiler
from mamushi.lm.parameters import decoder_blocks

CACHE = "TORCHINDUCTOR_CACHE_DIR"
CXX = "clang++" if sys.platform == "darwin" else "g++"
KERNELS, BYTES = 76, 399
"""What compiling spares of a block, forward and backward: kernels, and bytes read or written for
each value of its hidden states, (tokens, width); the least of three families, as
benchmarks/fusion.py counts them for frozen blocks on a CPU."""
LAUNCH, BANDWIDTH = 5e-6, 3.3e12
"""Seconds that a kernel takes at least, assumed, and bytes a second of an H100."""
WARM_UP = 60.0
"""Seconds that ``auto`` counts for compiling, assumed: one core of a CPU takes 34 to 50 for frozen
and trained blocks, and 4 where the cache has them."""


def spared(model: PreTrainedModel, passes: int, tokens: float) -> float:
    """Seconds that compiled blocks spare a training of ``passes`` through the model, forward and
    backward, of so many ``tokens`` each.

    Calculated for an H100 from counted kernels, and not measured on any GPU: a block is done sooner
    by its kernels' launches or by their bytes, whichever takes longer. The loss is not
    counted, nor are blocks through which no gradient flows. A slower GPU gains more.
    """
    blocks = decoder_blocks(model)[1]
    before = model.get_input_embeddings().parameters()
    flows, reached = any(p.requires_grad for p in before), 0
    for block in blocks:
        flows = flows or any(p.requires_grad for p in block.parameters())
        reached += flows
    width = model.config.get_text_config(decoder=True).hidden_size
    return passes * reached * max(KERNELS * LAUNCH, BYTES * tokens * width / BANDWIDTH)


@contextmanager
def compiled(
    model: PreTrainedModel,
    wanted: bool | str,
    seconds: Callable[[], float] = lambda: 0.0,
    backend: str | Callable[..., Any] = "inductor",
) -> Iterator[list[nn.Module]]:
    """Within the block, the model's transformer blocks and the loss are compiled, if ``wanted``:
    with ``auto`` on a GPU, for a training that it spares as many ``seconds`` as ``WARM_UP``. Gives
    the blocks that are; where compiling fails there are none from then on.

    The same maths up to the order of rounding. Compiling takes place in the first steps. What it
    writes goes to ``TORCHINDUCTOR_CACHE_DIR`` where that is set, else to a folder of this process's
    own: the compiler loads what it finds, and its usual folder is open to others to guess. Raises
    ``UserError`` where there is no compiler, and in the first steps what torch raises where
    compiling fails; ``auto`` says either in a line, and goes on without.
    """
    auto = wanted == "auto"
    if not wanted or (auto and (model.device.type != "cuda" or seconds() < WARM_UP)):
        yield []
        return
    if backend == "inductor" and (lacking := _lacking(model.device)) is not None:
        if not auto:
            raise UserError(
                f"execution.compile needs the {lacking}, and there is none here",
                do="install it, or set execution.compile to false",
            )
        _say(f"there is no {lacking}")
        yield []
        return
    blocks = list(decoder_blocks(model)[1])
    with ExitStack() as stack:
        if CACHE not in os.environ:
            os.environ[CACHE] = stack.enter_context(tempfile.TemporaryDirectory())
            stack.callback(os.environ.pop, CACHE)
        AttentionInterface.register(NAME, torch.compiler.disable(attend))
        stack.callback(AttentionInterface.register, NAME, attend)
        # Compiled only when it is called, a backward pass would fail where nothing can be done
        # about it: the forward pass is over.
        stack.enter_context(functorch.patch(force_non_lazy_backward_lowering=True))
        for block in blocks:
            block.compile(dynamic=True, backend=backend)
            stack.callback(setattr, block, "_compiled_call_impl", None)
            call = block._compiled_call_impl
            assert call is not None
            if auto:
                block._compiled_call_impl = partial(_or_not, blocks, call, block)
        loss = torch.compile(for_a_compiler, dynamic=True, backend=backend)
        stack.enter_context(computed_by(partial(_or_not, blocks, loss, by_hand) if auto else loss))
        yield blocks


def _or_not(
    blocks: list[nn.Module],
    call: Callable[..., Any],
    plain: Callable[..., Any],
    *given: Any,
    **named: Any,
) -> Any:
    """What ``call`` gives, which is compiled; after an error of the compiler what ``plain`` gives,
    and from then on none of ``blocks`` is compiled, nor is anything tried again."""
    if blocks:
        try:
            return call(*given, **named)
        except torch._dynamo.exc.TorchDynamoException as error:
            # torch's own suppress_errors would try each function that a block calls, and print a
            # page of traceback for each.
            why = getattr(error, "inner_exception", error)
            _say(f"{type(why).__name__}: {why}".partition("\n")[0])
            for block in blocks:
                block._compiled_call_impl = None
            blocks.clear()
    return plain(*given, **named)


def _say(why: str) -> None:
    print(f"execution.compile: blocks are not compiled: {why}", file=sys.stderr, flush=True)


def _lacking(device: torch.device) -> str | None:
    """What compiling needs and does not find."""
    # As torch finds it, for which CXX names a program and no options.
    program = os.environ.get("CXX", CXX)
    if shutil.which(program) is None:
        return f"C++ compiler {program}"
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "Python package triton"
    return None
