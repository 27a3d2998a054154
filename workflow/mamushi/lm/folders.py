"""Folders of models, on this disk or in the hub's cache: found, checked and read. Weights are read
from safetensors files alone: the older pickle files can run code when opened."""

import re
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from mamushi.errors import UserError, located
from mamushi.io.files import read_plain_json

# Without one of these, transformers makes an empty tokenizer up instead of complaining.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
DESCRIPTIONS = ("*.json", "*.model", "*.txt", "*.jinja")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
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
    path = folder / "config.json"
    config: dict[str, Any] = read_plain_json(path) if path.is_file() else {}
    pickled, problem = [name for ending in PICKLES for name in folder.glob(ending)], None
    # Also beside a model: transformers would open the one that the adapters name.
    if (folder / "adapter_config.json").is_file():
        problem = "holds adapters (LoRA) and not the model; merge them into it by peft"
    elif "quantization_config" in config:
        problem = "its weights are quantised, and cannot be trained; give those before that"
    elif pickled and not any(folder.glob("*.safetensors")):
        problem = f"its weights are pickle files ({pickled[0].name}), which can run code"
        problem += " when they are opened; save them again with save_pretrained"
    # A masked model such as BERT would open as a causal one, with attention that looks ahead. Code
    # that comes with a model is never run.
    kind, architectures = config.get("model_type"), config.get("architectures") or []
    if kind not in CAUSAL or (architectures and not {*architectures} & {*CAUSAL.values()}):
        says = f"config.json: {kind}, {architectures}" if config else "no config.json"
        problem = problem or f"not a causal language model that transformers knows ({says})"
    if problem:
        raise UserError(problem, where=folder)
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
        raise UserError(problem, where=folder)
    if getattr(model.config, "rescale_every", 0):
        # In eval mode, RWKV would divide its weights in place: stored, they would be others.
        model.config.rescale_every = 0
    return model
