"""Tiny models with real architectures, made and pretrained on the spot: grouped queries in all; no
tying in Llama; attention biases and no BOS in Qwen2; tied embeddings, soft-caps and sliding windows
in Gemma 2."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from mamushi.lm import device
from mamushi.lm.tokens import encode
from mamushi.lm.training import Descent, Objective, Step, TrainingLoop

# Betas, epsilon, weight decay and clip of pretraining; usual values, which need no tuning.
DESCENT, WARMUP = ((0.9, 0.95), 1e-8, 0.1, 1.0), 0.05


class Family(NamedTuple):
    """What of an architecture is not its sizes."""

    tied: bool
    eos: str
    bos: str | None = None
    pad: str | None = None


FAMILIES = {
    "llama": Family(False, "<|end_of_text|>", bos="<|begin_of_text|>"),
    "qwen2": Family(True, "<|endoftext|>", pad="<|endoftext|>"),
    "gemma2": Family(True, "<eos>", bos="<bos>", pad="<pad>"),
}


def build(
    settings: Mapping[str, Any], texts: Sequence[str], seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Make a random model (fp32, CPU) by the seed, and train a tokenizer on texts."""
    family = FAMILIES[settings["family"]]
    tokenizer = train_tokenizer(family, texts, settings["vocabulary_size"])
    options: dict[str, Any] = {}
    if settings["family"] == "gemma2":
        width = settings["hidden_size"] // settings["heads"]
        options = {"head_dim": width, "query_pre_attn_scalar": width}
        options["hidden_activation"] = "gelu_pytorch_tanh"
        # Short enough to act on texts that fill a good part of the positions.
        options["sliding_window"] = max(1, settings["max_positions"] // 4)
    config = AutoConfig.for_model(
        settings["family"],
        hidden_size=settings["hidden_size"],
        intermediate_size=settings["intermediate_size"],
        vocab_size=settings["vocabulary_size"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        num_key_value_heads=settings["key_value_heads"],
        max_position_embeddings=settings["max_positions"],
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        use_cache=False,
        tie_word_embeddings=family.tied,
        **options,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model, tokenizer


def train_tokenizer(family: Family, texts: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer of at most ``size`` tokens, which puts the family's BOS
    before a text when asked for special tokens."""
    # Their ids count from 0 in this order.
    special = list(dict.fromkeys(filter(None, (family.pad, family.eos, family.bos))))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    if family.bos is not None:
        ids = [(family.bos, special.index(family.bos))]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{family.bos} $A", special_tokens=ids
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=family.bos,
        eos_token=family.eos,
        pad_token=family.pad,
        clean_up_tokenization_spaces=False,
    )


def pretrain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    texts: Sequence[str],
    settings: Mapping[str, Any],
    seed: int,
) -> dict[str, list[float]]:
    """Train all parameters of ``model`` in place; return the columns of the ``train_log``. The
    first tokens of each text and an EOS are one stream, which is cut into rows of ``max_length``.
    Raises ``ValueError`` for less than one row."""
    length = settings["max_length"]
    ids = encode(tokenizer, texts, length, ended=False)
    stream = np.fromiter(chain(*([*row, tokenizer.eos_token_id] for row in ids)), np.int64)
    if stream.size < length:
        raise ValueError(f"pretraining: {stream.size} tokens do not fill one row of {length}")
    stream = stream[: stream.size // length * length].reshape(-1, length)
    rows = torch.from_numpy(stream).to(model.device)
    n, batch = len(rows), min(settings["batch_size"], len(rows))
    steps = max(1, int(settings["epochs"] * n / batch))
    rise, drawn = math.ceil(WARMUP * steps), torch.Generator().manual_seed(seed)
    # One random order of all rows after another.
    orders = [torch.randperm(n, generator=drawn) for _ in range(-(-steps * batch // n))]
    order = torch.cat(orders).split(batch)

    def step(number: int) -> Step:
        tokens = rows[order[number]]
        return Step([partial(loss, tokens)], tokens[:, 1:].numel(), (number + 1) * batch / n)

    def loss(tokens: torch.Tensor, module: nn.Module) -> list[torch.Tensor]:
        logits = module(input_ids=tokens).logits[:, :-1]
        return [nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())]

    rate = float(settings["learning_rate"])
    descent = Descent(rate, *DESCENT, "cosine", rise, rise, vectors_decay=False)
    model.train().requires_grad_(True)
    objective = Objective("pretraining", model, model, step)
    log = TrainingLoop(objective, descent, steps, device.accelerator("fp32")).run()
    model.eval()
    return log
