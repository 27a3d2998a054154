"""What the frozen blocks of a model make of texts, computed once and read from disk.

What enters the last blocks, which alone are unlearned, depends neither on the unlearner nor on the
examples chosen. Attention is causal: the states of a text's first tokens are those of the whole
text, so that a shorter cut needs no cache of its own. Dropout is off in the trunk.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.io.digests import fingerprint
from mamushi.io.domains import EVALUATION, FORGET, INFERENCE, RETAIN
from mamushi.io.files import atomic
from mamushi.lm.attention import Documents, can_share
from mamushi.lm.batches import batch_of, batches
from mamushi.lm.loss import run
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet, concat, read_tokens
from mamushi.running.identity import module_digest
from mamushi.running.locks import exclusive
from mamushi.running.progress import Progress
from mamushi.running.stage import Job
from mamushi.stages._models import Trains

DTYPES = {2: torch.bfloat16, 4: torch.float32}  # Bytes of a number -> the dtype of states.
EMPTY = torch.empty(0)


def start_from_trunk(
    model: PreTrainedModel,
    accelerator: Accelerator,
    trains: Trains,
    lengths: tuple[int, int],
    job: Job,
) -> None:
    """Let the model start from what its frozen blocks made of the ranked and the held-out texts, at
    these ``lengths``: in a workflow with ``execution.cache_trunk``, unless the model is cut over
    processes."""
    folder = json.loads(os.environ.get("MAMUSHI_TRUNKS", "null"))
    is_partial = trains.method == "partial" and accelerator.num_processes == 1
    if not (folder and job.execution.cache_trunk and is_partial):
        return
    read = partial(read_tokens, job.files["tokens"], job.files["examples"])
    texts = [read(INFERENCE, lengths[0], domains=[domain]) for domain in (FORGET, RETAIN)]
    texts.append(read(EVALUATION, lengths[1]))
    inputs = ("examples", "tokens", "model_card", "trained")
    origin = {
        "precision": accelerator.mixed_precision,
        "trained_blocks": trains.trained_blocks,
        "lengths": [*lengths],
        "inputs": {name: job.origin["inputs"].get(name) for name in inputs},
        "versions": job.origin["versions"],
        "code": module_digest(__name__),
    }
    how = (trains.trained_blocks, job.execution.batch_tokens, accelerator)
    use_states(Path(folder) / fingerprint(origin), model, concat(texts), *how)


def use_states(
    path: Path,
    model: PreTrainedModel,
    texts: TokenSet,
    trained_blocks: int,
    batch_tokens: int,
    accelerator: Accelerator,
) -> None:
    """Let the model run its last ``trained_blocks``, norm and head alone on texts, known by their
    ids, from the states in the file ``path``, which the first process to come writes. On other
    texts it runs as it is, and so do models whose blocks may need more than these states."""
    blocks = decoder_blocks(model)
    # Of other types, blocks may share keys and values of earlier ones, say.
    if not (can_share(model) and 0 < trained_blocks < len(blocks)):
        return
    order = list(batches(texts.lengths, batch_tokens, shared=True))
    with exclusive(path.with_suffix(".lock"), f"writes the same {path}"):
        if not path.exists():
            write_states(path, model, texts, order, len(blocks) - trained_blocks, accelerator)
    rows = np.concatenate(order)
    lengths, size = texts.lengths[rows], os.path.getsize(path)
    width = model.config.get_text_config(decoder=True).hidden_size
    dtype = DTYPES[size // int(lengths.sum()) // width]
    states = torch.from_file(str(path), size=size // dtype.itemsize, dtype=dtype).view(-1, width)
    of_texts = dict(zip(texts.ids[rows], states.split(lengths.tolist()), strict=True))
    _skip_blocks(model, blocks[: len(blocks) - trained_blocks], of_texts)


@torch.inference_mode()
def write_states(
    path: Path,
    model: PreTrainedModel,
    texts: TokenSet,
    order: Sequence[NDArray[np.int64]],
    first: int,
    accelerator: Accelerator,
) -> None:
    """Write what enters block ``first`` for every token of the texts (tokens, width), in the order
    of their batches and the dtype in which the states come out."""
    model.eval()
    progress = Progress(len(texts), "trunk", "text")
    with progress, atomic(path) as unfinished, unfinished.open("wb") as file:
        for rows in order:
            batch = batch_of(texts, rows, accelerator.device, shared=True)
            with accelerator.autocast():
                output = run(model.base_model, model, batch, output_hidden_states=True)
            file.write(output.hidden_states[first][0].contiguous().cpu().view(torch.uint8).numpy())
            progress.advance(len(rows))


def _skip_blocks(
    model: PreTrainedModel, frozen: Iterable[nn.Module], of_texts: Mapping[str, Tensor]
) -> None:
    """Let the frozen blocks give the states (tokens, width) of a batch's texts, if all have any."""
    device = model.get_input_embeddings().weight.device
    of_batch: list[Tensor | None] = [None]

    def read(module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        documents: Documents = kwargs.get("documents") or Documents(np.zeros(0, np.int64))
        states = [
            of_texts.get(name, EMPTY)[:length]
            for name, length in zip(documents.ids, documents.lengths.tolist(), strict=False)
        ]
        of_batch[0] = None
        if states and sum(map(len, states)) == documents.lengths.sum():
            hidden = torch.cat(states)
            hidden = hidden.pin_memory() if device.type == "cuda" else hidden
            of_batch[0] = hidden.to(device, non_blocking=True)[None]

    def forward(plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs) if of_batch[0] is None else of_batch[0]

    model.base_model.register_forward_pre_hook(read, with_kwargs=True)
    for block in frozen:
        block.forward = partial(forward, block.forward)
