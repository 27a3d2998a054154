"""Finding, checking and opening models; storing the tensors that were trained.

A *model card* (``results/base/{model}/card.json``) is how every later stage finds a model. It is
written once, by ``inspect``, after everything that can be wrong with a model has been looked for.
It names the digest of each of the model's files, and whoever opens the model compares them.
Weights are read from safetensors files alone: the older pickle files can run code when opened.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from mamushi.artifacts import digests, seal
from mamushi.artifacts.files import DISK_FULL, atomic, read_json
from mamushi.artifacts.tensors import HEADER_LENGTH, about, trained_metadata
from mamushi.errors import UserError
from mamushi.lm import lora, parameters, sharding
from mamushi.running import launch

if TYPE_CHECKING:
    from accelerate import Accelerator

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
# Without one of these, transformers makes an empty tokenizer up instead of complaining.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
DESCRIPTIONS = ("*.json", "*.model", "*.txt", "*.jinja")
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
# How safetensors, written in Rust, reports a full disk.
OS_ERROR = re.compile(r"os error (\d+)")


# --- cards ------------------------------------------------------------------------------------


def inspect(
    name: str,
    source: str,
    *,
    revision: str | None,
    trust_remote_code: bool,
    contaminated: bool,
) -> dict[str, Any]:
    """Check a model without giving it memory, and describe it: the content of its card.

    ``source`` is a folder or a hub id; a hub model is downloaded to the hub's cache here, so that
    later jobs need no network. Raises ``UserError`` for a folder that is missing or lacks a
    configuration, a tokenizer or whole safetensors weights, for a model that is not a causal
    language model, and for weights that are not finite: the card has their digests, so that whoever
    opens them later need not look again.
    """
    where = f"models.{name}.source"
    folder, commit = _fetch(source, revision, trust_remote_code, where)
    config = _check_config(folder, trust_remote_code)
    tokenizer = _tokenizer(folder, trust_remote_code)
    weights = check_weights(folder)
    model = _model(folder, trust_remote_code, device_map="meta")
    for path in weights:
        if path.suffix == ".safetensors":
            check_finite(path)
    text = model.config.get_text_config(decoder=True)
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    positions = getattr(text, "max_position_embeddings", None)
    described = sorted(p for pattern in DESCRIPTIONS for p in folder.glob(pattern))
    code = sorted(folder.glob("*.py")) if trust_remote_code else []
    return {
        "name": name,
        "source": str(folder) if commit is None else source,
        "revision": commit,
        "trust_remote_code": trust_remote_code,
        "contaminated": contaminated,
        "model_type": config["model_type"],
        "hidden_size": text.hidden_size,
        "layers": len(parameters.decoder_blocks(model)[1]),
        "vocabulary_size": embedding.weight.shape[0],
        "max_positions": positions,
        "tied": head is not None and head.weight is embedding.weight,
        "bos_token_id": tokenizer.bos_token_id,
        "pad_token_id": padding(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
        "parameters": parameters.count(model).all,
        "digests": {path.name: digests.of(path) for path in [*described, *code, *weights]},
    }


def save_base(
    out: Path,
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    contaminated: bool,
) -> dict[str, Any]:
    """Save a model that was made here into its folder; return the content of its card.

    A card is the word that the folder is complete: an earlier one goes first, and whoever calls
    writes the new one last. Raises ``UserError`` as ``inspect`` does.
    """
    making = out / ".making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    (out / "card.json").unlink(missing_ok=True)
    try:
        with writing_safetensors():
            # One file, whose name is known before.
            model.save_pretrained(making, max_shard_size="1000TB")
        tokenizer.save_pretrained(making)
        card = inspect(
            name, str(making), revision=None, trust_remote_code=False, contaminated=contaminated
        )
        for pattern in DESCRIPTIONS:
            for earlier in out.glob(pattern):
                # A chat template, say, of the model that was here before.
                earlier.unlink()
        # safetensors writes for nobody else to read.
        mode = (making / "config.json").stat().st_mode
        for path in sorted(making.iterdir()):
            path.chmod(mode)
            with atomic(out / path.name) as part:
                path.replace(part)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return {**card, "source": "."}


def check_length(max_length: int, positions: int | None, where: str) -> None:
    """Raise ``UserError`` when texts of ``max_length`` tokens do not fit the model's positions."""
    if positions is not None and max_length > positions:
        raise UserError(
            f"texts of {max_length} tokens are asked for, but the model has {positions} positions",
            where=where,
            do="lower tokens.max_length, training.max_length and evaluation.max_length",
        )


def padding(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token to pad with: the tokenizer's own, else its end of sequence (the paper), else 0."""
    own, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    return int(own if own is not None else end if end is not None else 0)


def read_card(card_path: str | Path) -> dict[str, Any]:
    """A model's card. Raises ``UserError`` when it is missing or damaged."""
    card = read_json(card_path)
    wanted = {"source", "revision", "trust_remote_code", "digests"}
    if not isinstance(card, dict) or not wanted <= card.keys():
        raise UserError("not a model card", where=card_path, do="delete it and run again")
    return card


# --- opening ----------------------------------------------------------------------------------


def open_model(card_path: str | Path, dtype: torch.dtype | str = "auto") -> PreTrainedModel:
    """The model of a card on the CPU, in eval mode, without a cache, with all tensors frozen.

    ``auto`` keeps the dtype in which the weights are stored: twice the memory would buy no bit.

    Attention is SDPA wherever the architecture has it. Gemma 2 has not, because SDPA lacks its
    soft-cap, and transformers then takes the eager one, which applies it. Raises ``UserError`` when
    the model is no longer where the card says, or not as the card says.
    """
    card = read_card(card_path)
    model = _model(_folder(card_path, card), card["trust_remote_code"], dtype=dtype)
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def open_trained(
    card_path: str | Path, trained: str | Path | None, training: Mapping[str, Any] | None
) -> PreTrainedModel:
    """The model of a card with the tensors of ``trained`` laid over it in fp32, in eval mode.

    Gradients are on for what ``training`` trains, whether or not there are tensors for it; without
    ``training`` the model is as its card has it. Raises ``UserError`` when the tensors are not
    those of this model and these settings.
    """
    model = open_model(card_path)
    if training is None:
        return model
    parameters.freeze(model, training)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    if trained is not None:
        load_trained(trained, model)
    return model


def open_sharded(
    card_path: str | Path,
    trained: str | Path | None,
    training: Mapping[str, Any] | None,
    precision: str,
    accelerator: Accelerator,
    also: Callable[[PreTrainedModel], object] = lambda model: None,
) -> PreTrainedModel:
    """The model of ``open_trained``, placed as ``device.place`` does, cut over processes.

    It is made on the meta device, and each process reads its rows of each tensor from the files, so
    that none ever holds more. What ``also`` gives gradients to lies in fp32 as well. Raises
    ``UserError`` as ``open_trained`` does, and for weights that go by other names than the
    model's tensors.
    """
    model, folder = _open_empty(card_path, checked=accelerator.is_main_process)
    if training is not None:
        parameters.freeze(model, training)
    taken = [name for name, p in model.named_parameters() if p.requires_grad]
    also(model)
    frozen = torch.bfloat16 if precision == "bf16" else torch.float32
    # Adapters, which are in no file, have been drawn.
    drawn: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(torch.float32 if parameter.requires_grad else frozen)
        parameter.requires_grad_(name in taken)
        if not parameter.is_meta:
            drawn[name] = parameter.detach().clone()
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    sharding.shard(model, accelerator.device)
    model.to_empty(device=accelerator.device)
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    _read(folder, model, drawn)
    if trained is not None:
        load_trained(trained, model)
    return model


def _read(folder: Path, model: PreTrainedModel, drawn: Mapping[str, torch.Tensor]) -> None:
    """Fill the model's shares from ``drawn`` and from the safetensors files of a folder."""
    own = dict(model.named_parameters())
    missing = own.keys() - drawn.keys()
    for name, value in drawn.items():
        sharding.fill(own[name], value)
    for path in check_weights(folder):
        if path.suffix != ".safetensors":
            continue
        with safe_open(path, framework="pt") as stored:
            for name in sorted(missing & set(stored.keys())):
                piece = stored.get_slice(name)
                if tuple(piece.get_shape()) != tuple(own[name].shape):
                    raise UserError(
                        "the weights do not have the shapes that config.json says",
                        where=folder,
                        do="download or save the model again",
                    )
                sharding.fill(own[name], piece)
                missing = missing - {name}
    if missing:
        raise UserError(
            f"the weights lack {len(missing)} tensors by the names that the model has for them, "
            f"the first is {min(missing)}",
            where=folder,
            do="save the model again with save_pretrained, or set execution.gpus_per_job to 1",
        )


def _open_empty(card_path: str | Path, *, checked: bool) -> tuple[PreTrainedModel, Path]:
    """The model of ``open_model`` with its parameters on the meta device, and its folder, whose
    files are compared with the card if ``checked``; buffers, which no file has, are on the CPU."""
    from accelerate import init_empty_weights

    card = read_card(card_path)
    folder, trust = _folder(card_path, card, checked=checked), card["trust_remote_code"]
    transformers_logging.set_verbosity_error()
    config = AutoConfig.from_pretrained(folder, trust_remote_code=trust, local_files_only=True)
    with init_empty_weights(include_buffers=False):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust)
    model.config.use_cache = False
    return model.eval().requires_grad_(False), folder


def open_tokenizer(card_path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a card's model. Raises ``UserError`` as ``open_model`` does."""
    card = read_card(card_path)
    return _tokenizer(_folder(card_path, card), card["trust_remote_code"])


def _folder(card_path: str | Path, card: Mapping[str, Any], *, checked: bool = True) -> Path:
    """Where the card's files are, after comparing each with the card if ``checked``.

    A relative path starts at the card's own folder, so that a project can move as a whole.
    """
    source, revision, trust = (card[key] for key in ("source", "revision", "trust_remote_code"))
    if revision is None:
        # By name, because `results` may be a link to somewhere else.
        source = os.path.normpath(Path(card_path).absolute().parent / source)
    folder = _fetch(source, revision, trust, card_path, cached=True)[0]
    for name, digest in card["digests"].items() if checked else ():
        if digests.of(folder / name) != digest:
            raise UserError(
                f"is not the file that {card_path} was made from",
                where=folder / name,
                do="put that back, or delete the card and run again",
            )
    return folder


def _fetch(
    source: str,
    revision: str | None,
    trust_remote_code: bool,
    where: object,
    *,
    cached: bool = False,
    weights: bool = True,
    whole: bool = False,
) -> tuple[Path, str | None]:
    """A model's folder, and its commit if it is a hub model's snapshot in the hub's cache.

    ``cached`` asks the hub only when the snapshot is not in the cache; ``whole`` is for a model
    that has parts in sub-folders.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder, None
    if not HUB_ID.fullmatch(source):
        raise UserError(f"no such folder: {source}", where=where, do="check the path")
    wanted = [
        *DESCRIPTIONS,
        *(["*.safetensors"] if weights else []),
        *(["*.py"] if trust_remote_code else []),
    ]
    # Sub-folders and `consolidated` files hold the same weights once more, for other programs.
    skipped = ["consolidated*", *([] if whole else ["*/*"])]
    try:
        found = snapshot_download(
            source,
            revision=revision,
            allow_patterns=wanted,
            ignore_patterns=skipped,
            local_files_only=cached,
        )
    except GatedRepoError:
        problem, do = "the model's owner has not given you access", "ask for it, then log in"
    except RepositoryNotFoundError:
        problem, do = "neither a folder nor a model on the hub", "check its name"
    except RevisionNotFoundError:
        problem, do = f"the hub's model has no revision {revision}", "check models.NAME.revision"
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        if cached:
            return _fetch(source, revision, trust_remote_code, where, weights=weights, whole=whole)
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise
        problem = "no such folder, not in the hub's cache, and the hub cannot be reached"
        do = f"put a local folder into models.NAME.source, or a cache with {source} into HF_HOME"
    else:
        return Path(found), Path(found).name
    raise UserError(f"{source}: {problem}", where=where, do=do)


def described(source: str, where: object) -> tuple[Path, str | None]:
    """The folder of a model with its configuration and tokenizer, and the commit of one on the hub,
    whose weights are not fetched. Raises ``UserError`` where there is none."""
    return _fetch(source, None, False, where, weights=False)


def check_described(folder: Path) -> tuple[str, int]:
    """A model's type and the number of its tokens. Raises ``UserError`` for a folder without a
    causal language model's configuration or without its tokenizer."""
    config = _check_config(folder, False)
    return str(config["model_type"]), len(_tokenizer(folder, False))


def _tokenizer(folder: Path, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    if not any((folder / name).is_file() for name in VOCABULARIES) and not trust_remote_code:
        raise UserError(
            f"no tokenizer (none of {', '.join(VOCABULARIES)})",
            where=folder,
            do="save the model's tokenizer in the same folder",
        )
    transformers_logging.set_verbosity_error()
    try:
        return AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    # The tokenizers library raises plain Exception for a file that it cannot parse.
    except Exception as error:
        raise UserError(
            f"the tokenizer cannot be read ({_brief(error)})",
            where=folder,
            do="save the model's tokenizer again",
        ) from error


def _model(folder: Path, trust_remote_code: bool, **options: Any) -> PreTrainedModel:
    """Open weights, and accept no tensor that is missing, misshapen or made up."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **options,
        )
    except (OSError, SafetensorError, RuntimeError, ValueError, ImportError, KeyError) as error:
        # A lack of memory is no fault of the files.
        if isinstance(error, torch.OutOfMemoryError):
            raise
        message = (
            "the weights do not have the shapes that config.json says"
            if "ignore_mismatched_sizes" in str(error)
            else f"the model cannot be read ({_brief(error)})"
        )
        raise UserError(message, where=folder, do="download or save the model again") from error
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        raise UserError(
            f"the weights lack {len(missing)} tensors, the first is {missing[0]}",
            where=folder,
            do="download or save the model again",
        )
    return model


def _brief(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters of it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


# --- checks of a folder -----------------------------------------------------------------------


def _check_config(folder: Path, trust_remote_code: bool) -> dict[str, Any]:
    """``config.json`` of a causal language model that may be opened."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            "no config.json, so this is not a model's folder",
            where=folder,
            do="give the folder that save_pretrained wrote",
        )
    config = read_json(path)
    if not isinstance(config, dict) or "model_type" not in config:
        raise UserError("names no model_type", where=path, do="download or save the model again")
    classes = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    causal = {c for names in classes for c in ([names] if isinstance(names, str) else names)}
    own = config.get("architectures") or []
    # A masked model such as BERT would open as a causal one, with attention that looks ahead.
    remote = "AutoModelForCausalLM" in config.get("auto_map", {})
    known = config["model_type"] in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if remote and not known and not trust_remote_code:
        raise UserError(
            "the model comes with Python code of its own, which is not run unless you trust it",
            where=path,
            do="read the code, then set models.NAME.trust_remote_code to true",
        )
    if not remote and not (known and (not own or causal.intersection(own))):
        raise UserError(
            f"not a causal language model that transformers knows ({', '.join(own) or 'no class'}, "
            f"model type {config['model_type']})",
            where=path,
            do="choose a decoder-only model, or a newer version of transformers",
        )
    return config


def check_weights(folder: Path) -> list[Path]:
    """The safetensors files of a model (and their index), each found to be whole.

    Raises ``UserError`` when there are none, one of the index is missing, or one is damaged.
    """
    index = folder / INDEX
    if index.is_file():
        mapping = read_json(index).get("weight_map", {})
        shards = sorted(set(mapping.values()))
        absent = [shard for shard in shards if not (folder / shard).is_file()]
        if absent or not shards:
            raise UserError(
                f"{len(absent)} of the {len(shards)} files that it lists are missing: {absent[:3]}",
                where=index,
                do="download the model again",
            )
        found = {shard: check_safetensors(folder / shard) for shard in shards}
        for tensor, shard in mapping.items():
            if tensor not in found[shard]:
                raise UserError(
                    f"lacks the tensor {tensor}",
                    where=folder / shard,
                    do="download the model again",
                )
        return [index, *(folder / shard for shard in shards)]
    if (folder / WEIGHTS).is_file():
        check_safetensors(folder / WEIGHTS)
        return [folder / WEIGHTS]
    if any(path for pattern in PICKLES for path in folder.glob(pattern)):
        raise UserError(
            "only pickle weights, which can run code when they are opened",
            where=folder,
            do="save the model as safetensors (save_pretrained of transformers does)",
        )
    raise UserError(f"no weights (no {WEIGHTS})", where=folder, do="download the model again")


def check_safetensors(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes by tensor name of a safetensors file whose size is what its header says.

    Reads the header alone. Raises ``UserError`` for a file that is missing or damaged.
    """
    try:
        with path.open("rb") as handle:
            (length,) = HEADER_LENGTH.unpack(handle.read(HEADER_LENGTH.size))
            size = path.stat().st_size
            if length > size:
                raise ValueError("it ends within its header")
            header = json.loads(handle.read(length))
        header.pop("__metadata__", None)
        ends = [0, *(entry["data_offsets"][1] for entry in header.values())]
        expected = HEADER_LENGTH.size + length + max(ends)
        if size != expected:
            raise ValueError(f"{size} bytes instead of {expected}")
        return {name: tuple(entry["shape"]) for name, entry in header.items()}
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except (ValueError, struct.error, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"damaged safetensors file ({_brief(error)})", where=path, do="make it again"
        ) from None


def check_finite(path: Path) -> None:
    """Raise ``UserError`` with the first tensor of a safetensors file that has NaN or infinity.

    Whoever trained such a model would be told to lower the learning rate.
    """
    with safe_open(path, framework="pt") as stored:
        for name in sorted(stored.keys()):
            tensor = stored.get_tensor(name)
            if tensor.is_floating_point() and tensor.numel():
                # One pass, in which NaN shows as well; numbers of 8 bits cannot be compared.
                small = tensor.element_size() == 1
                ends = torch.aminmax(tensor.float() if small else tensor)
                if not torch.isfinite(torch.stack([*ends])).all():
                    raise UserError(
                        f"the weights {name} are not all finite numbers",
                        where=path,
                        do="download or save the model again, from before it diverged",
                    )


# --- trained tensors --------------------------------------------------------------------------


def save_trained(path: str | Path, model: PreTrainedModel, metadata: Mapping[str, Any]) -> None:
    """Store the tensors that take gradients, in fp32, whole or not at all; the rest is the base's.

    ``metadata`` (JSON) is what ``artifacts.tensors.trained_metadata`` gives back. Of several
    processes the first one stores; where the model is cut, all have to call.
    """
    trained = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
    tensors = {}
    for name, parameter in trained:
        whole = sharding.gathered(parameter.detach())
        if not launch.follows():
            tensors[name] = whole.to("cpu", torch.float32).contiguous()
    if not launch.follows():
        _store(path, tensors, metadata)


def _store(path: str | Path, tensors: dict[str, torch.Tensor], metadata: Mapping[str, Any]) -> None:
    with atomic(path) as part, writing_safetensors():
        save_file(tensors, part, metadata=about(metadata))
        seal.seal(part)


@contextmanager
def writing_safetensors() -> Iterator[None]:
    """Turn a system error that safetensors wraps (a full disk, above all) back into ``OSError``."""
    try:
        yield
    except SafetensorError as error:
        code = OS_ERROR.search(str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), str(error)) from error


def copy_trained(path: str | Path, to: str | Path, metadata: Mapping[str, Any]) -> None:
    """Store the tensors of a file that ``save_trained`` wrote in another, with ``metadata``."""
    with _open_trained(path) as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    _store(to, tensors, metadata)


def load_trained(path: str | Path, model: PreTrainedModel) -> None:
    """Copy trained tensors into ``model``, each in the dtype and on the device that it has there.

    The file must hold just the tensors that take gradients in ``model`` (``parameters.freeze``).
    Raises ``UserError``, and changes nothing, when a tensor is missing, not to be trained or of
    another shape, or when the file is damaged.
    """
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with _open_trained(path) as stored:
        names = set(stored.keys())
        for problem, tensors in (
            ("lacks tensors that the model trains", own.keys() - names),
            ("has tensors that the model does not train", names - own.keys()),
        ):
            if tensors:
                raise UserError(
                    f"{problem}: {len(tensors)}, the first is {min(tensors)}",
                    where=path,
                    do="use the model and the training settings that it was made with",
                )
        _check_shapes(path, stored, own)
        with torch.no_grad():
            for name in sorted(names):
                sharding.fill(own[name], stored.get_slice(name))


def overlay(path: str | Path, model: PreTrainedModel) -> int:
    """Copy all tensors of a file into ``model``, in fp32; return how many.

    Where ``load_trained`` goes on with a run, this completes a model that is handed on: a tensor
    that was trained becomes fp32 there, since rounding to bf16 would undo small steps. Adapters are
    put in for a file of adapters, and stay beside the weights until ``lora.merge``. Raises
    ``UserError``, and changes no tensor, when the model has no such tensor, or of another shape.
    """
    with _open_trained(path) as stored:
        names = sorted(stored.keys())
        if any(map(lora.is_adapter, names)):
            made = trained_metadata(path)["settings"]
            # Of a fine-tune, or of unlearning, whose own training says nothing of adapters.
            lora.add(model, made.get("lora") or made["training"]["lora"])
        own = dict(model.named_parameters())
        _check_shapes(path, stored, own)
        for name in names:
            own[name].data = stored.get_tensor(name).float()
    return len(names)


def _check_shapes(path: str | Path, stored: Any, own: Mapping[str, torch.Tensor]) -> None:
    for name in sorted(stored.keys()):
        shape = tuple(stored.get_slice(name).get_shape())
        has = tuple(own[name].shape) if name in own else "no such tensor"
        if shape != has:
            raise UserError(
                f"{name} is {shape}, but the model has {has}",
                where=path,
                do="give the card of the model that it was made with",
            )


@contextmanager
def _open_trained(path: str | Path) -> Iterator[Any]:
    """A file that ``save_trained`` wrote, every bit of which is as it was written."""
    seal.opened(path).close()
    with safe_open(path, framework="pt") as stored:
        yield stored
