"""Model cards, and opening what they name.

A *model card* (``results/base/{model}/card.json``) is how later stages find a model. ``inspect``
writes it once, with the digest of each of the model's files, which whoever opens it compares.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.errors import UserError
from mamushi.io import digests
from mamushi.io.files import IS_SECONDARY, read_json, read_plain_json
from mamushi.lm import parameters, sharding
from mamushi.lm.folders import check_config, descriptions, fetch, read_model, read_tokenizer
from mamushi.lm.storage import overlay, writing_safetensors

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
"""What configurations call the number of a model's positions."""


def padding_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the token to pad with: the tokenizer's own, else its end of sequence, else 0."""
    either = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    return next(int(token) for token in either if token is not None)


def inspect(name: str, source: str, *, revision: str | None, contaminated: bool) -> dict[str, Any]:
    """Check a model without giving it memory, and return the content of its card.

    ``source`` is a folder or a hub id; a hub model is downloaded to the hub's cache here, so that
    later jobs need no network. Raises ``UserError`` for what is no causal language model.
    """
    folder, commit = fetch(source, revision, f"models.{name}.source")
    config, _ = check_config(folder), read_tokenizer(folder)
    model = read_model(folder, device_map="meta")
    text = model.config.get_text_config(decoder=True)
    output, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    index, weights = folder / "model.safetensors.index.json", {"model.safetensors"}
    if index.is_file():
        weights = set(read_plain_json(index)["weight_map"].values())
    lengths = (text.to_dict().get(name) for name in POSITIONS)
    files = [*descriptions(folder), *(folder / file for file in sorted(weights))]
    return {
        "name": name,
        "source": str(folder) if commit is None else source,
        "revision": commit,
        "contaminated": contaminated,
        "model_type": config["model_type"],
        "hidden_size": text.hidden_size,
        "layers": len(parameters.decoder_blocks(model)),
        "vocabulary_size": embedding.weight.shape[0],
        # None where texts may be of any length, as with states (Mamba) or distances (ALiBi).
        "max_positions": next((n for n in lengths if isinstance(n, int)), None),
        "tied": output is not None and output.weight is embedding.weight,
        "parameters": model.num_parameters(),
        "digests": {path.name: digests.of(path) for path in files},
    }


def save_base(
    out: Path, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> dict[str, Any]:
    """Save a model that was made here into its folder; return the content of its card, which is the
    word that the folder is complete: whoever calls writes it last."""
    # The card of the model that was here before goes first, and its chat template, say.
    for earlier in [out / "card.json", *descriptions(out)]:
        earlier.unlink(missing_ok=True)
    with writing_safetensors():
        # One file, whose name is known before.
        model.save_pretrained(out, max_shard_size="1000TB")
    tokenizer.save_pretrained(out)
    # safetensors writes for nobody else to read.
    (out / "model.safetensors").chmod((out / "config.json").stat().st_mode)
    return {**inspect(name, str(out), revision=None, contaminated=False), "source": "."}


def open_model(card_path: str | Path) -> PreTrainedModel:
    """Open the model of a card on the CPU, in eval mode, without a cache, with all tensors frozen,
    in the dtype in which they are stored. Raises ``UserError`` when the model is no longer as the
    card says."""
    model = read_model(folder_of(card_path), dtype="auto")
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def place_model(model: PreTrainedModel, precision: str, device: torch.device) -> PreTrainedModel:
    """Move a model to its device: frozen parameters in ``precision``, trained ones in fp32, since
    small steps vanish in bf16, also of a model that is only evaluated. Layer norms are always in
    fp32: PyTorch's kernel on the CPU takes input in fp32 with no other parameters."""
    frozen = torch.bfloat16 if precision == "bf16" else torch.float32
    modules = (m for m in model.modules() if isinstance(m, nn.LayerNorm | nn.GroupNorm))
    norms = {id(parameter) for module in modules for parameter in module.parameters(recurse=False)}
    for parameter in model.parameters():
        is_whole = parameter.requires_grad or id(parameter) in norms
        parameter.data = parameter.data.to(device, torch.float32 if is_whole else frozen)
    # Buffers (rotary frequencies) stay in fp32: positions would lose precision in bf16.
    for buffer in model.buffers():
        buffer.data = buffer.data.to(device)
    return model


def open_placed(
    card_path: str | Path,
    stored: Sequence[str | Path],
    accelerator: Accelerator,
    prepare: Callable[[PreTrainedModel], object] = lambda model: None,
) -> PreTrainedModel:
    """Open the model of a card with the tensors of ``stored`` files in it, one after another, on
    the accelerator's device, as ``place_model`` places it: what was trained, and what ``prepare``
    gives gradients to, lies in fp32. Of processes that share a model the first one's is cut."""
    model = open_model(card_path)
    edits = [edit for path in stored if (edit := overlay(path, model))]
    prepare(model)
    place = torch.device("cpu") if accelerator.num_processes > 1 else accelerator.device
    place_model(model, accelerator.mixed_precision, place)
    sharding.shard(model, accelerator)
    for edit in edits:
        edit(model)
    return model


def open_tokenizer(card_path: str | Path) -> PreTrainedTokenizerBase:
    """Open the tokenizer of a card's model, as ``open_model`` opens that."""
    return read_tokenizer(folder_of(card_path))


def folder_of(card_path: str | Path) -> Path:
    """Return where the files of a card are, after the first process of a job has compared each with
    the card; a relative path starts at the card's own folder, so that a project can move."""
    card = read_json(card_path)
    source, revision = card["source"], card["revision"]
    if revision is None:
        # By name, because `results` may be a link to somewhere else.
        source = os.path.normpath(Path(card_path).absolute().parent / source)
    folder = fetch(source, revision, card_path, cached=True)[0]
    for name, digest in () if IS_SECONDARY else card["digests"].items():
        if digests.of(folder / name) != digest:
            problem = f"is not the file that {card_path} was made from; delete that and run again"
            raise UserError(problem, where=folder / name)
    return folder
