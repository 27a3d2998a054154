"""Transformer blocks and the loss compiled by ``torch.compile`` for the steps of a training.

What a GPU gains is fewer launches and fewer passes over memory for norms, rotations, activations
and residuals. A block is compiled once with the number of tokens left open, because no two steps
have the same, and blocks share the code. Attention stands outside: it reads where texts end on the
host, which a compiler would take for constants. So do the product of the head and the last norm.
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
from mamushi.lm import loss
from mamushi.lm.attention import NAME, attend
from mamushi.lm.parameters import decoder_blocks

CACHE = "TORCHINDUCTOR_CACHE_DIR"
CXX = "clang++" if sys.platform == "darwin" else "g++"
LONG = 4_000_000
"""Tokens of a training from which on ``auto`` compiles its blocks: 2,000 steps of 32 texts of 61
tokens, an estimate for a model of 8 billion parameters that has not been measured on a GPU."""


def _compute_loss_with(function: Any) -> None:
    """Put a function in the place of the loss; the module itself is handed to nobody, or all of it
    would count as code of each training."""
    loss.nll_in_place = function


@contextmanager
def compiled(
    model: PreTrainedModel,
    wanted: bool | str,
    tokens: Callable[[], int] = lambda: 0,
    backend: str | Callable[..., Any] = "inductor",
) -> Iterator[list[nn.Module]]:
    """Within the block, the model's blocks and the loss are compiled, if ``wanted``: with ``auto``
    on a GPU, for a training of at least ``LONG`` ``tokens``. Gives the blocks that are; where
    compiling fails there are none from then on.

    What compiling writes goes to ``TORCHINDUCTOR_CACHE_DIR`` where that is set, else to a folder of
    this process's own: the compiler loads what it finds, and its usual folder is open to others to
    guess. Raises ``UserError`` where there is no compiler, and in the first steps what torch raises
    where compiling fails; ``auto`` says either in a line, and goes on without.
    """
    auto = wanted == "auto"
    if not wanted or (auto and (model.device.type != "cuda" or tokens() < LONG)):
        yield []
        return
    if backend == "inductor" and (missing := _missing(model.device)) is not None:
        if not auto:
            raise UserError(
                f"execution.compile needs the {missing}, and there is none here",
                do="install it, or set execution.compile to false",
            )
        _say(f"there is no {missing}")
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
                block._compiled_call_impl = partial(_call_or_fall_back, blocks, call, block)
        plain = loss.nll_in_place
        faster = torch.compile(plain, dynamic=True, backend=backend)
        # For all threads: a loss with weights is computed in the one that goes backward.
        loss.nll_in_place = partial(_call_or_fall_back, blocks, faster, plain) if auto else faster
        stack.callback(_compute_loss_with, plain)
        yield blocks


def _call_or_fall_back(
    blocks: list[nn.Module],
    call: Callable[..., Any],
    plain: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call ``call``, which is compiled; after an error of the compiler call ``plain``, and from
    then on none of ``blocks`` is compiled, nor is anything tried again."""
    if blocks:
        try:
            return call(*args, **kwargs)
        except torch._dynamo.exc.TorchDynamoException as error:
            # torch's own suppress_errors would try each function that a block calls, and print a
            # page of traceback for each.
            why = getattr(error, "inner_exception", error)
            _say(f"{type(why).__name__}: {why}".partition("\n")[0])
            for block in blocks:
                block._compiled_call_impl = None
            blocks.clear()
    return plain(*args, **kwargs)


def _say(why: str) -> None:
    print(f"execution.compile: blocks are not compiled: {why}", file=sys.stderr, flush=True)


def _missing(device: torch.device) -> str | None:
    """Name what compiling needs and does not find."""
    # As torch finds it, for which CXX names a program and no options.
    program = os.environ.get("CXX", CXX)
    if shutil.which(program) is None:
        return f"C++ compiler {program}"
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "Python package triton"
    return None
