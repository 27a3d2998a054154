"""Folders of models, on this disk or in the hub's cache, their cards, and opening what these name.

A *model card* (``results/base/{model}/card.json``) is how later stages find a model. ``inspect``
writes it once, with the digest of each of the model's files, which whoever opens it compares.
Weights are read from safetensors files alone: the older pickle files can run code when opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from mamushi.errors import UserError, located
from mamushi.io import digests
from mamushi.io.files import read_json, read_plain_json
from mamushi.io.model_files import INDEX, positions, source_mistake
from mamushi.lm import device, head, parameters, sharding
from mamushi.lm.storage import overlay, writing_safetensors
from mamushi.lm.tokens import first_token
from mamushi.running import launch

# Without one of these, transformers makes an empty tokenizer up instead of complaining.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
DESCRIPTIONS = ("*.json", "*.model", "*.txt", "*.jinja")
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()


def fetch(
    source: str,
    revision: str | None,
    where: object,
    *,
    cached: bool = False,
    weights: bool = True,
) -> tuple[Path, str | None]:
    """Return a model's folder, and its commit if it is a hub model's snapshot in the hub's cache.
    ``cached`` asks the hub only when the snapshot is not there; without ``weights`` descriptions
    alone are fetched. Raises ``UserError`` at ``where`` for a folder that is not there."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder, None
    if not HUB_ID.fullmatch(source):
        raise UserError(f"no such folder: {source}", where=where)
    options: dict[str, Any] = {"revision": revision, "ignore_patterns": ["consolidated*", "*/*"]}
    options["allow_patterns"] = [*DESCRIPTIONS, *["*.safetensors"] * weights]
    with located(f"{where}: {source}: no such folder, nor to be had from the hub"):
        try:
            snapshot = Path(snapshot_download(source, local_files_only=cached, **options))
        except LocalEntryNotFoundError:
            if not cached:
                raise
            snapshot = Path(snapshot_download(source, **options))
    return snapshot, snapshot.name


def check_config(folder: Path) -> dict[str, Any]:
    """Return ``config.json`` of a causal language model that may be opened, else ``UserError``."""
    if mistake := source_mistake(str(folder)):
        raise UserError(mistake, where=folder)
    config: dict[str, Any] = read_plain_json(folder / "config.json")
    kind, architectures = config.get("model_type"), config.get("architectures") or []
    known = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    causal = {c for names in known.values() for c in ([names] if isinstance(names, str) else names)}
    # A masked model such as BERT would open as a causal one, with attention that looks ahead. Code
    # that comes with a model is never run.
    if kind not in known or (architectures and not causal.intersection(architectures)):
        problem = f"not a causal language model that transformers knows ({kind}, {architectures})"
        raise UserError(problem, where=folder, do="choose a decoder-only model")
    return config


def descriptions(folder: Path) -> list[Path]:
    """Return a model's files that are no weights."""
    return sorted(path for pattern in DESCRIPTIONS for path in folder.glob(pattern))


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Read a folder's tokenizer. Raises ``UserError`` where there is none."""
    if not any((folder / name).is_file() for name in VOCABULARIES):
        do = "save the model's tokenizer in the same folder"
        raise UserError("no tokenizer", where=folder, do=do)
    with located(f"{folder}: the tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    settings = folder / "tokenizer_config.json"
    if settings.is_file() and "add_bos_token" in (stated := read_plain_json(settings)):
        # transformers drops it beside a tokenizer.json, whose template then has the word.
        tokenizer.init_kwargs["add_bos_token"] = stated["add_bos_token"]
    return tokenizer


def read_model(folder: Path, **options: Any) -> PreTrainedModel:
    """Read a folder's model, and accept no tensor that is missing, misshapen or made up; the
    ``options`` are those of ``from_pretrained``."""
    options |= {"use_safetensors": True, "local_files_only": True, "output_loading_info": True}
    with located(folder):
        model, report = AutoModelForCausalLM.from_pretrained(folder, **options)
    if missing := sorted(report["missing_keys"]):
        problem = f"the weights lack {len(missing)} tensors, the first is {missing[0]}"
        others = "".join(f"; they have {name}" for name in sorted(report["unexpected_keys"])[:1])
        raise UserError(problem + others, where=folder)
    if getattr(model.config, "rescale_every", 0):
        # In eval mode, RWKV would divide its weights in place: stored, they would be others.
        model.config.rescale_every = 0
    return model


def padding(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the token to pad with: the tokenizer's own, else its end of sequence, else 0."""
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    return int(pad if pad is not None else end if end is not None else 0)


def inspect(name: str, source: str, *, revision: str | None, contaminated: bool) -> dict[str, Any]:
    """Check a model without giving it memory, and return the content of its card.

    ``source`` is a folder or a hub id; a hub model is downloaded to the hub's cache here, so that
    later jobs need no network. Raises ``UserError`` for what is no causal language model.
    """
    folder, commit = fetch(source, revision, f"models.{name}.source")
    config, tokenizer = check_config(folder), read_tokenizer(folder)
    model = read_model(folder, device_map="meta")
    text = model.config.get_text_config(decoder=True)
    output, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    index, weights = folder / INDEX, {"model.safetensors"}
    if index.is_file():
        weights = set(read_plain_json(index)["weight_map"].values())
    files = [*descriptions(folder), *(folder / file for file in sorted(weights))]
    return {
        "name": name,
        "source": str(folder) if commit is None else source,
        "revision": commit,
        "contaminated": contaminated,
        "model_type": config["model_type"],
        "hidden_size": text.hidden_size,
        "layers": len(parameters.decoder_blocks(model)[1]),
        "vocabulary_size": embedding.weight.shape[0],
        "max_positions": positions(text.to_dict()),
        "tied": output is not None and output.weight is embedding.weight,
        "bos_token_id": first_token(tokenizer),
        "pad_token_id": padding(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
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


def open_placed(
    card_path: str | Path,
    stored: Sequence[str | Path],
    precision: str,
    accelerator: Accelerator,
    prepare: Callable[[PreTrainedModel], object] = lambda model: None,
) -> PreTrainedModel:
    """Open the model of a card with the tensors of ``stored`` files in it, one after another, on
    the accelerator's device, as ``device.place`` places it: what was trained, and what ``prepare``
    gives gradients to, lies in fp32. An edit of logits is laid over its head.

    Of processes that share a model the first one's is cut.
    """
    model = open_model(card_path)
    edits = [overlay(path, model) for path in stored]
    prepare(model)
    is_cut = accelerator.num_processes > 1
    device.place(model, precision, torch.device("cpu") if is_cut else accelerator.device)
    sharding.shard(model, accelerator)
    for edit in filter(None, edits):
        head.lay_over(model, edit)
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
    for name, digest in () if launch.is_secondary() else card["digests"].items():
        if digests.of(folder / name) != digest:
            problem = f"is not the file that {card_path} was made from; delete that and run again"
            raise UserError(problem, where=folder / name)
    return folder
