"""GGUF files, quantized or not, opened as models with plain weights by transformers."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.errors import UserError
from mamushi.io import digests
from mamushi.lm.folders import brief, read_model, reading
from mamushi.lm.tokens import frame


def open_gguf(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, Any]]:
    """Return the model in fp32, its tokenizer, and what ``describe`` says of the file. Raises
    ``UserError`` as that does, and for an architecture that transformers cannot read from GGUF."""
    header = describe(path)
    with tempfile.TemporaryDirectory() as folder:
        # Beside other files of its folder, transformers would take the tokenizer from those.
        Path(folder, "model.gguf").symlink_to(path.resolve())
        options: dict[str, Any] = {"gguf_file": "model.gguf", "dtype": torch.float32}
        do = "choose another model, or a newer version of transformers"
        with reading(f"this GGUF file of the architecture {header['architecture']!r}", path, do):
            model = read_model(Path(folder), path, **options)
            tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file="model.gguf")
    if not header["bos"]:
        drop_bos(tokenizer)
    # Dequantized as they are, the weights are nobody's but the model's: it is saved as any other.
    model.hf_quantizer = None
    del model.config.quantization_config
    return model, tokenizer, header


def drop_bos(tokenizer: PreTrainedTokenizerFast) -> None:
    """Let nothing stand before a text, whatever the tokenizer names or puts there: SmolLM2's BOS
    opens a turn of a conversation, not a text."""
    tokenizer.bos_token = None
    before, behind = frame(tokenizer)
    if before:
        # transformers gives a tokenizer of this kind a template of its own.
        names = tokenizer.convert_ids_to_tokens(behind)
        single = " ".join(["$A", *names])
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=single, pair=f"{single} $B:1", special_tokens=[*zip(names, behind, strict=True)]
        )


def describe(path: Path) -> dict[str, Any]:
    """Describe a GGUF file: its most frequent type (quantization), weights by type, whether texts
    begin with its BOS, licence. Raises ``UserError`` for one that is missing, damaged, or of a type
    that cannot be read."""
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
        problem = f"not a whole GGUF file ({brief(error)})"
        raise UserError(problem, where=path, do="download it again") from None
    weights: Counter[str] = Counter()
    for tensor in reader.tensors:
        weights[tensor.tensor_type.name] += int(tensor.n_elements)
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
