"""GGUF files, quantized or not, as models with plain weights.

transformers reads many architectures of GGUF, but refuses to save what it has read. Here the
weights are put into a model that knows nothing of GGUF, and can be saved as any other.
"""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader, dequantize
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from mamushi.artifacts import digests
from mamushi.errors import UserError


def opened(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, Any]]:
    """The model in fp32, its tokenizer, and what ``look`` says of the file.

    fp32 holds each number of every type of GGUF as it is: a product of a 16-bit scale and a few
    bits, plus a 16-bit offset. Raises ``UserError`` as ``look`` does, and for an architecture that
    transformers cannot read from GGUF.
    """
    about = look(path)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as alone:
        # Beside other files of its folder, transformers would take the tokenizer from those.
        Path(alone, "model.gguf").symlink_to(path.resolve())
        place: dict[str, Any] = {"gguf_file": "model.gguf", "local_files_only": True}
        try:
            read, report = AutoModelForCausalLM.from_pretrained(
                alone, dtype=torch.float32, output_loading_info=True, **place
            )
            tokenizer = AutoTokenizer.from_pretrained(alone, **place)
            if not about["bos"]:
                # Named for other uses: SmolLM2's opens a turn of a conversation, not a text.
                tokenizer.bos_token = None
        # What transformers does not know it reports in many ways, down to a plain Exception.
        except Exception as error:
            if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
                raise
            raise UserError(
                f"transformers cannot read this GGUF file of the architecture "
                f"{about['architecture']!r} ({_brief(error)})",
                where=path,
                do="choose another model, or a newer version of transformers",
            ) from error
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        raise UserError(
            f"lacks {len(missing)} tensors, the first is {missing[0]}",
            where=path,
            do="download it again",
        )
    config = copy.deepcopy(read.config)
    del config.quantization_config
    with torch.device("meta"):
        plain = type(read)(config)
    plain.load_state_dict(read.state_dict(), assign=True)
    plain.tie_weights()
    return plain, tokenizer, about


def look(path: Path) -> dict[str, Any]:
    """What a GGUF file is: name, SHA-256, architecture, quantization (the type of most of its
    weights), the number of weights by type, whether texts begin with its BOS, if it names one, and
    its licence field, None where it has none.

    Raises ``UserError`` for a file that is missing, no GGUF, or cut off, and for a type that cannot
    be read.
    """
    digest = digests.of(path)
    try:
        reader = GGUFReader(path)
        architecture = _field(reader, "general.architecture")
        if architecture is None or not reader.tensors:
            raise ValueError("it names no architecture, or has no tensors")
        licence = _field(reader, "general.license")
        bos = _field(reader, "tokenizer.ggml.add_bos_token") != "False"
    # A file that is cut off ends within a number, a text or a tensor.
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise UserError(
            f"not a whole GGUF file ({_brief(error)})", where=path, do="download it again"
        ) from None
    weights: Counter[str] = Counter()
    for tensor in reader.tensors:
        kind = tensor.tensor_type
        if kind.name not in weights:
            try:
                dequantize(tensor.data[:1], kind)
            except NotImplementedError:
                raise UserError(
                    f"the tensor {tensor.name} has the type {kind.name}, which cannot be read",
                    where=path,
                    do="choose a file with another quantization, such as Q8_0",
                ) from None
        weights[kind.name] += int(tensor.n_elements)
    return {
        "file": path.name,
        "sha256": digest,
        "architecture": architecture,
        "quantization": weights.most_common(1)[0][0],
        "weights": dict(weights),
        "bos": bos,
        "license": licence,
    }


def _field(reader: GGUFReader, name: str) -> str | None:
    field = reader.get_field(name)
    return None if field is None else str(field.contents())


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
