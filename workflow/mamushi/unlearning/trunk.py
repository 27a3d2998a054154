"""The frozen trunk's output on disk, and a model that starts from it.

An unlearner trains the last blocks alone; embeddings, head and all earlier blocks stay what they
were. Write f for the embeddings and the frozen blocks (the trunk), and g for the trained blocks,
the norm and the head (the tail). The model is g(f(x)), and f(x) depends neither on the unlearner
nor on the examples chosen, nor does it change while g is trained. So it is computed once per
dataset, model and seed, and every training step and measurement runs g alone. Attention is causal:
the states of a text's first tokens are those of the whole text, so that a shorter cut needs no
cache of its own. Dropout, where an architecture has any, is off in the trunk.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.artifacts.files import part_of
from mamushi.errors import UserError
from mamushi.lm.attention import supports
from mamushi.lm.batches import Batch, batches, collate
from mamushi.lm.loss import run
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet, offsets_of
from mamushi.running.progress import Progress

AGAIN = "delete it and run again"
PART_BYTES = 2**28
"""Size from which the states that are in memory are written to a file."""
SAMPLE = 2
"""Texts on which a model is asked whether it can be cut in two."""


class States(Protocol):
    """Where hidden states come from: a ``Trunk``, or anything that gives them in the same way."""

    def hidden(self, ids: Sequence[str], lengths: NDArray[np.int64]) -> Tensor:
        """Return states (tokens, width) of the texts, one after another."""
        ...


class Trunk:
    """A cache folder, mapped into memory: what enters the first trained block, for every text.

    ``trained_blocks`` is how many blocks lie behind it, ``metadata`` where it comes from.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a folder that ``write_trunk`` wrote; of the states, nothing is read yet.

        Raises ``UserError`` when it is missing, damaged, or no such folder.
        """
        self.path = Path(path)
        try:
            files = [safe_open(part, "pt") for part in sorted(self.path.glob("*.safetensors"))]
            self.metadata: dict[str, Any] = json.loads(files[0].metadata()["mamushi"])
            self.trained_blocks = int(self.metadata["trained_blocks"])
        except (SafetensorError, OSError, IndexError, KeyError, TypeError) as error:
            what = f"no cache of hidden states, or a damaged one ({type(error).__name__}: {error})"
            raise UserError(what, where=path, do=AGAIN) from None
        self._file_of = {text: file for file in files for text in file.keys()}  # noqa: SIM118

    def hidden(self, ids: Sequence[str], lengths: NDArray[np.int64]) -> Tensor:
        """Read hidden states (tokens, width) of the first ``lengths`` tokens of each text, one text
        after another.

        On the CPU, in the dtype in which they are stored. Raises ``UserError`` for an id that the
        folder does not have and for a text longer than it is there.
        """
        states = []
        for text, length in zip(ids, np.asarray(lengths).tolist(), strict=True):
            if text not in self._file_of:
                raise UserError(f"does not hold example {text}", where=self.path, do=AGAIN)
            stored = self._file_of[text].get_tensor(text)
            if length > len(stored):
                raise UserError(
                    f"holds {len(stored)} tokens of example {text}, but {length} are asked for",
                    where=self.path,
                    do=AGAIN,
                )
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
    its id, in the dtype in which the states come out, so that nothing is lost. The metadata
    ``mamushi`` is the JSON of ``provenance`` and ``trained_blocks``. Memory holds one file of
    ``PART_BYTES`` alone; tail and head are computed for two texts, to see that the model can be
    cut.

    Raises ``ValueError`` when an id occurs twice, and ``UserError`` when there is no text, the disk
    has no room for them all, or the model's tail needs more of its trunk than the hidden states.
    """
    path = Path(path)
    model.eval()
    joined = _joined(texts)
    if joined.offsets[-1] == 0:
        raise UserError("there is no text to unlearn or to measure", do="check the data card")
    sample = _require_separable(model, joined, trained_blocks, accelerator)
    path.parent.mkdir(parents=True, exist_ok=True)
    needed = int(joined.offsets[-1]) * sample[0].nbytes
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise UserError(
            f"needs {needed / 1e9:.1f} GB, but the disk has {free / 1e9:.1f} GB left",
            where=path,
            do="free some space, or set execution.cache_trunk to false",
        )
    metadata = json.dumps({**provenance, "trained_blocks": trained_blocks}, sort_keys=True)
    parts = list(batches(joined.lengths, batch_tokens, shared=supports(model)))
    folder = part_of(path)
    folder.mkdir()
    with Progress(len(joined), "trunk", "text") as progress, contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        states: dict[str, Tensor] = {}
        for number, rows in enumerate(parts, 1):
            batch = _batch(model, joined, rows, accelerator)
            found = _entering(model, batch, trained_blocks, accelerator).cpu()
            own = found.split(joined.lengths[rows].tolist())
            states |= zip(joined.ids[rows].tolist(), map(Tensor.clone, own), strict=True)
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


def _joined(texts: Sequence[TokenSet]) -> TokenSet:
    """Put all token sets into one."""
    ids = np.concatenate([part.ids for part in texts])
    unique, counts = np.unique(ids.astype(str), return_counts=True)
    if len(unique) < len(ids):
        raise ValueError(f"example {unique[counts > 1][0]} is in two token sets, or in one twice")
    return TokenSet(
        ids=ids,
        domains=np.concatenate([part.domains for part in texts]),
        tokens=np.concatenate([part.tokens[part.offsets[0] : part.offsets[-1]] for part in texts]),
        offsets=offsets_of(np.concatenate([part.lengths for part in texts])),
    )


class _Reached(Exception):
    """The forward pass has come to the first trained block."""


def _batch(
    model: PreTrainedModel, texts: TokenSet, rows: NDArray[np.int64], accelerator: Accelerator
) -> Batch:
    return collate([texts[i] for i in rows], accelerator.device, shared=supports(model))


def _entering(
    model: PreTrainedModel, batch: Batch, trained_blocks: int, accelerator: Accelerator
) -> Tensor:
    """Compute what enters the first trained block (tokens, width), and nothing behind it."""
    found: list[Tensor] = []

    def stop(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found.append(args[0] if args else kwargs["hidden_states"])
        raise _Reached

    blocks = decoder_blocks(model)[1]
    handle = blocks[_first(blocks, trained_blocks)].register_forward_pre_hook(
        stop, with_kwargs=True
    )
    try:
        with accelerator.autocast():
            run(model, model, batch)
    except _Reached:
        pass
    finally:
        handle.remove()
    if found[0].shape[:2] != batch.ids.shape:
        shapes = tuple(found[0].shape), tuple(batch.ids.shape)
        raise ValueError("states of {} for texts of {}".format(*shapes))
    return batch.flat(found[0])


def _first(blocks: nn.ModuleList, trained_blocks: int) -> int:
    """Return the index of the first trained block. Raises ``ValueError`` unless there is one."""
    if not 0 < trained_blocks <= len(blocks):
        raise ValueError(f"{trained_blocks} trained blocks in a model of {len(blocks)}")
    return len(blocks) - trained_blocks


class _Given:
    """States that are in memory already."""

    def __init__(self, states: Tensor) -> None:
        self.states = states

    def hidden(self, ids: Sequence[str], lengths: NDArray[np.int64]) -> Tensor:
        return self.states


def _require_separable(
    model: PreTrainedModel, texts: TokenSet, trained_blocks: int, accelerator: Accelerator
) -> Tensor:
    """Return hidden states (tokens, width) of a few texts. Raises ``UserError`` unless such states
    are all that the tail needs of the trunk.

    They are not where later blocks share keys and values of earlier ones, say. A few texts of
    middling length show it, before hours are spent.
    """
    order = np.argsort(texts.lengths, kind="stable")
    order = order[texts.lengths[order] > 0]
    rows = order[len(order) // 2 :][:SAMPLE]
    batch = _batch(model, texts, rows, accelerator)
    with accelerator.autocast():
        whole = batch.flat(run(model, model, batch).logits)
    problem = "gives other logits"
    try:
        states = _entering(model, batch, trained_blocks, accelerator)
        with Tail(model, trained_blocks, _Given(states)) as tail, accelerator.autocast():
            tail.put(texts.ids[rows].tolist(), texts.lengths[rows])
            cut = batch.flat(run(model, model, batch).logits)
        # A model that has diverged says NaN either way; to find that is not the task here.
        whole, cut = whole.float().nan_to_num(), cut.float().nan_to_num()
        if float((whole - cut).abs().max()) <= 1e-2 * float(whole.abs().max()):
            return states
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise UserError(
        f"the last blocks cannot run on the hidden states that enter them alone ({problem})",
        where=type(model).__name__,
        do="set execution.cache_trunk to false",
    )


class _PassThrough(nn.Module):
    """Stands where a frozen block was, and computes nothing.

    Its output is what was put, whatever its input: some architectures index the output of a block,
    others take it whole, and in either case the first trained block's input is replaced.
    """

    def __init__(self, tail: Tail, block: nn.Module) -> None:
        super().__init__()
        self._tail = tail
        # In a tuple, so that the block is no part of the model for as long as this stands there.
        self._replaced = (block,)

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the block by which a loop over blocks decides, such as its
        attention."""
        if name in ("_tail", "_replaced"):
            return super().__getattr__(name)
        return getattr(self._replaced[0], name)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._tail.states()


class Tail:
    """Inside this context, ``model`` runs its last ``trained_blocks`` blocks, norm and head alone.

    Each forward pass starts from the hidden states that were ``put`` for it. Embeddings are still
    looked up, since the model derives positions and attention masks from their shape; the frozen
    blocks are out of the model, so that neither ``parameters`` nor ``to`` nor ``train`` reaches
    them. On leaving, the model is what it was, but for what was trained.

    Raises ``ValueError`` when the model has fewer blocks, ``UserError`` when ``trunk`` is a folder
    made for another number of trained blocks.
    """

    def __init__(self, model: PreTrainedModel, trained_blocks: int, trunk: States) -> None:
        if isinstance(trunk, Trunk) and trunk.trained_blocks != trained_blocks:
            raise UserError(
                f"was made for {trunk.trained_blocks} trained blocks, not for {trained_blocks}",
                where=trunk.path,
                do=AGAIN,
            )
        self._trunk = trunk
        self._blocks = decoder_blocks(model)[1]
        self._first = _first(self._blocks, trained_blocks)
        self._frozen: list[nn.Module] = []
        self._handles: list[Any] = []
        self._put: Tensor | None = None
        self._lengths = np.empty(0, dtype=np.int64)

    def __enter__(self) -> Tail:
        self._frozen = [self._blocks[i] for i in range(self._first)]
        for i, block in enumerate(self._frozen):
            self._blocks[i] = _PassThrough(self, block)
        self._handles = [
            self._blocks[0].register_forward_pre_hook(self._lay_out, with_kwargs=True),
            self._blocks[self._first].register_forward_pre_hook(self._substitute, with_kwargs=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        for i, block in enumerate(self._frozen):
            self._blocks[i] = block
        self._frozen, self._handles, self._put = [], [], None

    def put(self, ids: Sequence[str], lengths: NDArray[np.int64]) -> None:
        """Take the states of these texts for the next forward pass, and for that one alone.

        The pass must be over the same texts in the same order, each cut at ``lengths`` tokens, in
        one row or padded on the right to the longest. Raises ``UserError`` as ``Trunk.hidden``
        does.
        """
        states = self._trunk.hidden(ids, lengths)
        device = next(self._blocks[self._first].parameters()).device
        if device.type == "cuda" and states.device.type == "cpu":
            states = states.pin_memory()
        self._put = states.to(device, non_blocking=True)[None]
        self._lengths = np.asarray(lengths)

    def states(self) -> Tensor:
        """Return the states of the coming forward pass. Raises ``RuntimeError`` when none were
        put."""
        if self._put is None:
            raise RuntimeError("a forward pass without its hidden states: put them first")
        return self._put

    def _lay_out(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Bring the states into the shape of the pass, with 0 for padding. Raises ``RuntimeError``
        when the pass is over a batch of another shape than was put."""
        shape = (args[0] if args else kwargs["hidden_states"]).shape
        states = self.states()
        if shape[:2] == (len(self._lengths), max(1, int(self._lengths.max(initial=0)))):
            if states.shape[1] == shape[0] * shape[1]:
                self._put = states.view(shape)
            else:
                real = torch.from_numpy(np.arange(shape[1])[None, :] < self._lengths[:, None])
                self._put = states.new_zeros(shape)
                self._put[real.to(states.device)] = states[0]
        elif shape != states.shape:
            raise RuntimeError(
                f"a forward pass over {tuple(shape)} with states of {tuple(states.shape)}"
            )

    def _substitute(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Hand the states over in the way in which the model passes them, once."""
        states, self._put = self.states(), None
        if args:
            return (states, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": states}
