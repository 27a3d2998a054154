"""GGUF files of tiny models, as the converters of others write them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import (
    MODEL_ARCH,
    GGMLQuantizationType,
    GGUFWriter,
    TokenType,
    get_tensor_name_map,
    quants,
)
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from mamushi.lm import tiny

# Rows of 32 numbers, the block of Q8_0.
SIZES = {
    **{"hidden_size": 64, "layers": 4, "heads": 2, "key_value_heads": 1, "intermediate_size": 96},
    **{"vocabulary_size": 320, "max_positions": 64},
}
ARCHITECTURES = {"llama": MODEL_ARCH.LLAMA, "qwen2": MODEL_ARCH.QWEN2}
TEXTS = [
    f"{a} {b} told the {c} that most of its words\nwere wrong."
    for a, b, c in zip(
        ["No", "The", "One more"],
        ["reader", "old snake", "clerk"],
        ["editor", "town", "king"],
        strict=True,
    )
]


def built(family: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model of float16 numbers, as most are published, whose logits are far from uniform."""
    model, tokenizer = tiny.build({"family": family, **SIZES}, TEXTS * 20, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter * (20 if parameter.dim() > 1 else 1)).half())
    return model.eval(), tokenizer


def plain(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers as a GGUF file of this type has them."""
    quantized = GGMLQuantizationType[kind]
    return quants.dequantize(quants.quantize(values, quantized), quantized)


def _add_vocabulary(writer: GGUFWriter, tokenizer: PreTrainedTokenizerFast, bos: bool) -> None:
    described = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    special = {*tokenizer.all_special_tokens}
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [TokenType.CONTROL if token in special else TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges([" ".join(pair) for pair in described["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    if tokenizer.bos_token_id is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_add_bos_token(bos)
    if tokenizer.pad_token_id is not None:
        writer.add_pad_token_id(tokenizer.pad_token_id)


def write(
    path: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    kind: str,
    *,
    architecture: str | None = None,
    without: str = "",
    bos: bool = True,
    raw: Any = None,
) -> Path:
    """Matrices in the type ``kind``, vectors in F32.

    Without ``bos`` it says that texts begin with none. Broken ones: another name of the
    ``architecture``, ``without`` a tensor, one more of type I8.
    """
    config = model.config
    writer = GGUFWriter(path, architecture or config.model_type)
    writer.add_license("apache-2.0")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    _add_vocabulary(writer, tokenizer, bos)
    names = get_tensor_name_map(ARCHITECTURES[config.model_type], config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, parameter in model.named_parameters():
        values = parameter.detach().float().numpy()
        part = name.split(".")[-2]
        if config.model_type == "llama" and part in heads:
            # llama.cpp turns neighbouring pairs, transformers the two halves of a head.
            split = values.reshape(heads[part], 2, -1, values.shape[1])
            values = split.swapaxes(1, 2).reshape(values.shape)
        stem, ending = name.rsplit(".", 1)
        if name != without:
            stored = GGMLQuantizationType[kind if values.ndim > 1 else "F32"]
            writer.add_tensor(
                f"{names.get_name(stem)}.{ending}",
                quants.quantize(np.ascontiguousarray(values), stored),
                raw_dtype=stored,
            )
    if raw is not None:
        writer.add_tensor("extra.weight", raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
