"""Folders of models, on this disk or in the hub's cache: found, checked and read. Weights are read
from safetensors files alone: the older pickle files can run code when opened."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from mamushi.errors import UserError
from mamushi.io.files import DISK_FULL, read_plain_json
from mamushi.io.model_files import INDEX, kind_mistake

ONE_FILE = "model.safetensors"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
# Without one of these, transformers makes an empty tokenizer up instead of complaining.
SENTENCE_PIECE = ("tokenizer.model", "spiece.model")
VOCABULARIES = ("tokenizer.json", *SENTENCE_PIECE, "vocab.json", "vocab.txt")
DESCRIPTIONS = ("*.json", "*.model", "*.txt", "*.jinja")
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
SAVE_AGAIN = "download or save the model again"


def fetch(
    source: str,
    revision: str | None,
    where: object,
    *,
    cached: bool = False,
    weights: bool = True,
) -> tuple[Path, str | None]:
    """Return a model's folder, and its commit if it is a hub model's snapshot in the hub's cache.

    ``cached`` asks the hub only when the snapshot is not in the cache. Without
    ``weights`` descriptions alone are fetched. Raises ``UserError`` at ``where``
    for a source that is neither a folder nor to be had from the hub.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder, None
    if not HUB_ID.fullmatch(source):
        raise UserError(f"no such folder: {source}", where=where, do="check the path")
    patterns = [*DESCRIPTIONS, *["*.safetensors"] * weights]
    try:
        snapshot = snapshot_download(
            source,
            revision=revision,
            allow_patterns=patterns,
            # These hold the same weights once more, for other programs.
            ignore_patterns=["consolidated*", "*/*"],
            local_files_only=cached,
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        if cached:
            return fetch(source, revision, where, weights=weights)
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise
        raise UserError(
            f"{source}: no such folder, and not to be had from the hub ({brief(error)})",
            where=where,
            do="check name and revision, log in where access is granted by the owner, or give a "
            "folder",
        ) from error
    return Path(snapshot), Path(snapshot).name


def check_config(folder: Path) -> dict[str, Any]:
    """Return ``config.json`` of a causal language model that may be opened, else ``UserError``."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            "no config.json, so this is not a model's folder",
            where=folder,
            do="give the folder that save_pretrained wrote",
        )
    config = read_plain_json(path)
    if not isinstance(config, dict) or "model_type" not in config:
        raise UserError("names no model_type", where=path, do=SAVE_AGAIN)
    if mistake := kind_mistake(config):
        raise UserError(mistake, where=path)
    classes = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    causal = {c for names in classes for c in ([names] if isinstance(names, str) else names)}
    architectures = config.get("architectures") or []
    is_causal = config["model_type"] in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    # A masked model such as BERT would open as a causal one, with attention that looks ahead. Code
    # that comes with a model is never run.
    if not is_causal or (architectures and not causal.intersection(architectures)):
        raise UserError(
            "not a causal language model that transformers knows "
            f"({', '.join(architectures) or 'no class'}, model type {config['model_type']})",
            where=path,
            do="choose a decoder-only model, or a newer version of transformers",
        )
    return config


def check_weights(folder: Path) -> list[Path]:
    """Return the safetensors files of a model (and their index). Raises ``UserError`` when there
    are none, one of the index is missing, or one is damaged."""
    index, single = folder / INDEX, folder / ONE_FILE
    if index.is_file():
        shards = read_plain_json(index).get("weight_map", {}).values()
        files = sorted({folder / name for name in shards})
        for path in files:
            check_safetensors(path)
        return [index, *files]
    if single.is_file():
        check_safetensors(single)
        return [single]
    if any(path for pattern in PICKLES for path in folder.glob(pattern)):
        raise UserError(
            "only pickle weights, which can run code when they are opened",
            where=folder,
            do="save the model as safetensors (save_pretrained does)",
        )
    raise UserError(f"no weights (no {ONE_FILE})", where=folder, do="download the model again")


def check_safetensors(path: Path) -> None:
    """Raise ``UserError`` for a safetensors file that is missing, or damaged by its header."""
    try:
        safe_open(path, framework="pt")
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except SafetensorError as error:
        problem = f"damaged safetensors file ({brief(error)})"
        raise UserError(problem, where=path, do="make it again") from None


def check_finite(path: Path, rows: int | None = None) -> None:
    """Raise ``UserError`` with the first tensor of a safetensors file that has NaN or infinity, by
    its first ``rows`` or by all of it."""
    with safe_open(path, framework="pt") as stored:
        for name in sorted(stored.keys()):
            part = stored.get_slice(name)
            sampled = rows is not None and part.get_shape()
            # Other numbers than those of 8 bits need no copy.
            tensor = part[:rows] if sampled else stored.get_tensor(name)
            plain = tensor.float() if tensor.element_size() == 1 else tensor
            # One pass, in which NaN shows as well.
            if plain.numel() and not torch.isfinite(torch.stack([*torch.aminmax(plain)])).all():
                problem = f"the weights {name} are not all finite numbers"
                raise UserError(problem, where=path, do=f"{SAVE_AGAIN}, from before it diverged")


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Read a folder's tokenizer. Raises ``UserError`` where there is none, or a damaged one."""
    if not any((folder / name).is_file() for name in VOCABULARIES):
        raise UserError(
            f"no tokenizer (none of {', '.join(VOCABULARIES)})",
            where=folder,
            do="save the model's tokenizer in the same folder",
        )
    slow = [name for name in SENTENCE_PIECE if (folder / name).is_file()]
    lacking = [name for name in ("sentencepiece", "google.protobuf") if not _is_there(name)]
    if slow and lacking and not (folder / "tokenizer.json").is_file():
        raise UserError(
            f"its tokenizer is {slow[0]} alone, for which packages are missing",
            where=folder,
            do="pip install sentencepiece protobuf, or save the tokenizer with a tokenizer.json",
        )
    transformers_logging.set_verbosity_error()
    with reading("the tokenizer", folder, "save the model's tokenizer again"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    settings = folder / "tokenizer_config.json"
    if settings.is_file() and "add_bos_token" in (stated := read_plain_json(settings)):
        # transformers drops it beside a tokenizer.json, whose template then has the word.
        tokenizer.init_kwargs["add_bos_token"] = stated["add_bos_token"]
    return tokenizer


def _is_there(package: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.util.find_spec(package) is not None
    return False


def read_model(folder: Path, where: Path | None = None, **options: Any) -> PreTrainedModel:
    """Read a folder's model, and accept no tensor that is missing, misshapen or made up.

    ``options`` are those of ``from_pretrained``. Raises ``UserError`` at ``where``, by default the
    folder.
    """
    where = where or folder
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with reading("the model", where):
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **options,
        )
    if missing := sorted(report["missing_keys"]):
        problem = f"the weights lack {len(missing)} tensors, the first is {missing[0]}"
        raise UserError(problem, where=where, do=SAVE_AGAIN)
    steady(model)
    return model


def steady(model: PreTrainedModel) -> None:
    """Let no pass of the model change its weights: measured in eval mode, RWKV divides them in
    place, so that what is stored after that would be other weights than those that were trained."""
    if getattr(model.config, "rescale_every", 0):
        model.config.rescale_every = 0


@contextlib.contextmanager
def reading(activity: str, where: Path, do: str = SAVE_AGAIN) -> Iterator[None]:
    """Turn any error within the block into ``UserError``: libraries that cannot read a file say so
    in many ways, down to a plain ``Exception``. A lack of memory is no fault of the file."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        problem = f"{activity} cannot be read ({brief(error)})"
        if "ignore_mismatched_sizes" in str(error):
            problem = "the weights do not have the shapes that config.json says"
        raise UserError(problem, where=where, do=do) from error


def brief(error: BaseException) -> str:
    """Return the first line of an error's message, at most 200 characters of it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
