"""Blocks compiled by ``torch.compile`` for the steps of a training, and for nothing else.

What a GPU gains is fewer launches and fewer passes over memory for norms, rotations, activations
and residuals; products and attention stay the kernels that they are. A block is compiled once with
the number of tokens left open, because no two steps have the same and padding to a few sizes would
be computed for nothing. Blocks share the code, so that a model of 32 takes no longer than one of 4.

Attention stands outside: it reads where texts end on the host, which a compiler would take for
constants.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from transformers import AttentionInterface, PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.attention import NAME, attend
from mamushi.lm.parameters import decoder_blocks

CACHE = "TORCHINDUCTOR_CACHE_DIR"
LARGE = 10**8
"""Parameters from which ``auto`` compiles: the steps of a tiny model are over before it pays."""
CXX = "clang++" if sys.platform == "darwin" else "g++"


@contextmanager
def compiled(
    model: PreTrainedModel, wanted: bool | str, backend: str = "inductor"
) -> Iterator[None]:
    """Within the block, the model's transformer blocks are compiled, if ``wanted``: of ``auto`` a
    large model on a GPU.

    The same maths up to the order of rounding. Compiling takes place in the first steps. What it
    writes goes to ``TORCHINDUCTOR_CACHE_DIR`` where that is set, else to a folder of this process's
    own: the compiler loads what it finds, and its usual folder is open to others to guess. Raises
    ``UserError`` where there is no compiler.
    """
    if wanted == "auto":
        wanted = model.device.type == "cuda" and model.num_parameters() >= LARGE
    if not wanted:
        yield
        return
    blocks = decoder_blocks(model)[1]
    if backend == "inductor":
        _require_compiler(next(model.parameters()).device)
    with ExitStack() as stack:
        if CACHE not in os.environ:
            os.environ[CACHE] = stack.enter_context(tempfile.TemporaryDirectory())
            stack.callback(os.environ.pop, CACHE)
        AttentionInterface.register(NAME, torch.compiler.disable(attend))
        stack.callback(AttentionInterface.register, NAME, attend)
        for block in blocks:
            block.compile(dynamic=True, backend=backend)
            stack.callback(setattr, block, "_compiled_call_impl", None)
        yield


def _require_compiler(device: torch.device) -> None:
    # As torch finds it, for which CXX names a program and no options.
    program = os.environ.get("CXX", CXX)
    if shutil.which(program) is None:
        lacking = f"the C++ compiler {program}"
    elif device.type == "cuda" and importlib.util.find_spec("triton") is None:
        lacking = "the Python package triton"
    else:
        return
    raise UserError(
        f"execution.compile needs {lacking}, and there is none here",
        do="install it, or set execution.compile to false",
    )
