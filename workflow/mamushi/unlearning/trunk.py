"""The frozen trunk's output on disk, and a model that starts from it.

An unlearner trains the last blocks alone. What enters them does not change while they are trained,
and depends neither on the unlearner nor on the examples chosen. So it is computed once per dataset,
model and seed, and every training step and measurement runs the rest alone. Attention is causal:
the states of a text's first tokens are those of the whole text, so that a shorter cut needs no
cache of its own. Dropout, where an architecture has any, is off in the trunk.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io.files import part_of
from mamushi.lm.attention import Documents, supports
from mamushi.lm.batches import batches, collate
from mamushi.lm.loss import run
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet, joined
from mamushi.running.progress import Progress

AGAIN = "delete it and run again"
PART_BYTES = 2**28
"""Size from which the states that are in memory are written to a file."""


def separable(model: PreTrainedModel, trained_blocks: int) -> bool:
    """Return whether the trained blocks need nothing of the model but the states that enter them.

    Known of the types whose texts can share a row: others may share keys and values of earlier
    blocks, say.
    """
    return supports(model) and 0 < trained_blocks < len(decoder_blocks(model)[1])


class Trunk:
    """A cache folder, mapped into memory: what enters the first trained block, for every text.

    ``trained_blocks`` is how many blocks lie behind it, ``metadata`` where it comes from.
    """

    def __init__(self, path: str | Path, *further: Path) -> None:
        """Open a folder that ``write_trunk`` wrote, and ``further`` ones of other texts of the same
        model; of the states, nothing is read yet.

        Raises ``UserError`` when one is missing, damaged, or no such folder.
        """
        self.path = Path(path)
        try:
            folders = (self.path, *further)
            parts = [part for folder in folders for part in sorted(folder.glob("*.safetensors"))]
            files = [safe_open(part, "pt") for part in parts]
            self.metadata: dict[str, Any] = json.loads(files[0].metadata()["mamushi"])
            self.trained_blocks = int(self.metadata["trained_blocks"])
        except (SafetensorError, OSError, IndexError, KeyError, TypeError) as error:
            problem = (
                f"no cache of hidden states, or a damaged one ({type(error).__name__}: {error})"
            )
            raise UserError(problem, where=path, do=AGAIN) from None
        self._file_of = {text: file for file in files for text in file.keys()}  # noqa: SIM118

    def hidden(self, ids: Sequence[str], lengths: Sequence[int]) -> Tensor:
        """Read hidden states (tokens, width) of the first ``lengths`` tokens of each text, one text
        after another, on the CPU in the dtype in which they are stored.

        Raises ``UserError`` for a text that is not there, or not in this length.
        """
        states = []
        for text, length in zip(ids, lengths, strict=True):
            file = self._file_of.get(text)
            stored = torch.empty(0) if file is None else file.get_tensor(text)
            if length > len(stored):
                problem = (
                    f"holds {len(stored)} tokens of example {text}, but {length} are asked for"
                )
                raise UserError(problem, where=self.path, do=AGAIN)
            states.append(stored[:length])
        return torch.cat(states)


@torch.inference_mode()
def write_trunk(
    path: str | Path,
    model: PreTrainedModel,
    texts: Sequence[TokenSet],
    trained_blocks: int,
    batch_tokens: int,
    accelerator: Accelerator,
    provenance: Mapping[str, Any],
) -> None:
    """Write what enters the block before which all is frozen, for every text of all token sets.

    A folder of safetensors files, whole or absent, with a tensor (tokens, width) for each text, by
    its id, in the dtype in which the states come out, so that nothing is lost. The metadata of each
    file has ``provenance`` and ``trained_blocks``. Raises ``UserError`` when the disk has no room.
    """
    path, every = Path(path), joined(texts)
    model.eval()
    first = len(decoder_blocks(model)[1]) - trained_blocks
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = json.dumps({**provenance, "trained_blocks": trained_blocks}, sort_keys=True)
    parts = list(batches(every.lengths, batch_tokens, shared=True))
    folder = part_of(path)
    folder.mkdir()
    with Progress(len(every), "trunk", "text") as progress, contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        states: dict[str, Tensor] = {}
        for number, rows in enumerate(parts, 1):
            batch = collate([every[row] for row in rows], accelerator.device, shared=True)
            with accelerator.autocast():
                output = run(model.base_model, model, batch, output_hidden_states=True)
            hidden = output.hidden_states[first][0].cpu()
            if number == 1:
                _require_room(path, int(every.offsets[-1]) * hidden[0].nbytes)
            split = hidden.split(every.lengths[rows].tolist())
            states |= zip(every.ids[rows].tolist(), map(Tensor.clone, split), strict=True)
            if number == len(parts) or sum(t.nbytes for t in states.values()) >= PART_BYTES:
                part = folder / f"{number:06}.safetensors"
                try:
                    save_file(states, part, {"mamushi": metadata})
                except SafetensorError as error:
                    do = "free some space and run again"
                    raise UserError(f"cannot be written ({error})", where=path, do=do) from None
                states = {}
            progress.advance(len(rows))
        shutil.rmtree(path, ignore_errors=True)
        folder.rename(path)


def _require_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise UserError(
            f"needs {needed / 1e9:.1f} GB, but the disk has {free / 1e9:.1f} GB left",
            where=path,
            do="free some space, or set execution.cache_trunk to false",
        )


class _PassThrough(nn.Module):
    """Stands where a frozen block was, and gives the states that were read for this pass."""

    def __init__(self, block: nn.Module, states: list[Tensor]) -> None:
        super().__init__()
        # In a tuple, so that the block is no part of the model for as long as this stands there.
        self._replaced, self._states = (block,), states

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the block by which a loop over blocks decides, such as its
        attention."""
        return getattr(self.__dict__["_replaced"][0], name)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._states[0]


@contextmanager
def starting_from(trunk: Trunk | None, model: PreTrainedModel) -> Iterator[None]:
    """Within the block, the model runs its last blocks, norm and head alone, on batches of texts of
    the trunk that have their ids; without a trunk it is as it was.

    Embeddings are still looked up, since the model derives positions from their shape; the frozen
    blocks are out of the model, so that neither ``parameters`` nor ``to`` nor ``train`` reaches
    them.
    """
    if trunk is None:
        yield
        return
    blocks, states = decoder_blocks(model)[1], [torch.empty(0)]
    frozen = list(blocks[: len(blocks) - trunk.trained_blocks])
    device = next(blocks[-1].parameters()).device

    def read(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        texts: Documents = kwargs["documents"]
        hidden = trunk.hidden(texts.ids, texts.lengths.tolist())
        hidden = hidden.pin_memory() if device.type == "cuda" else hidden
        states[0] = hidden.to(device, non_blocking=True)[None]

    handle = model.base_model.register_forward_pre_hook(read, with_kwargs=True)
    try:
        for place, block in enumerate(frozen):
            blocks[place] = _PassThrough(block, states)
        yield
    finally:
        handle.remove()
        for place, block in enumerate(frozen):
            blocks[place] = block
