"""Generation after prompts, and the likelihood of what was generated under another model."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import GenerationConfig, PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.errors import located
from mamushi.lm.perplexity import token_nll
from mamushi.lm.rotary import by_text
from mamushi.lm.sharding import call_gathered
from mamushi.lm.tokens import TokenSet, encode, offsets_of
from mamushi.running.progress import Progress


def prompt_tokens(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """Return the token ids of a prompt, after which the model is to speak: in the tokenizer's chat
    template, where it has one, what a user says; else plain text after the BOS, if there is one."""
    if tokenizer.chat_template is None:
        return next(encode(tokenizer, [prompt], ended=False))
    said = [{"role": "user", "content": prompt}]
    options: Any = {"add_generation_prompt": True, "sanitize_control_tokens": True}
    with located(f"probe.prompts: {prompt!r} in the chat template"):
        encoded: Any = tokenizer.apply_chat_template(said, return_dict=True, **options)
    return [*encoded["input_ids"]]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the tokens that end a text, sorted, by tokenizer, configuration and generation
    configuration: only the last knows how a chat model ends its turn."""
    text = model.config.get_text_config(decoder=True)
    named = (tokenizer.eos_token_id, text.eos_token_id, model.generation_config.eos_token_id)
    lists = (ids if isinstance(ids, list) else [ids] for ids in named)
    return sorted({int(token) for token in chain(*lists) if token is not None})


def continuations(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    new_tokens: int,
    accelerator: Accelerator,
) -> dict[str, list[Any]]:
    """Return the columns of the artifact ``continuations``: a row per prompt, greedy, of at most
    ``new_tokens``, up to and with the token that ends the text; one by one, since padding changes
    the last bits."""
    asked, said = [prompt_tokens(tokenizer, prompt) for prompt in prompts], []
    with Progress(len(prompts), "generate", "prompt") as progress:
        for ids in asked:
            said += generate(model, tokenizer, np.array([ids]), new_tokens, accelerator)
            progress.advance()
    return {"prompt": [*prompts], "prompt_tokens": asked, "tokens": said}


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: NDArray[Any],
    new_tokens: int,
    accelerator: Accelerator,
    **changes: Any,
) -> list[list[int]]:
    """Return at most ``new_tokens`` tokens after each row of ``prompt`` (texts, length), the
    likeliest unless ``changes`` of a ``GenerationConfig`` say otherwise. Of the model's own only
    its ends count: no temperature or repetition penalty."""
    ids = torch.tensor(prompt.astype(np.int64), device=accelerator.device)
    pads = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    options: dict[str, Any] = {"do_sample": False, "num_beams": 1, "use_cache": True} | changes
    options |= {"max_new_tokens": new_tokens, "eos_token_id": end_tokens(model, tokenizer) or None}
    options["pad_token_id"] = next(token for token in pads if token is not None)
    configured, config = model.generation_config, GenerationConfig(**options)
    read = {"attention_mask": torch.ones_like(ids), "generation_config": config}
    model.generation_config = config
    model.eval()
    try:
        with accelerator.autocast(), by_text(model):
            generated = call_gathered(model, partial(model.generate, ids, **read))
    finally:
        model.generation_config = configured
    return [*generated[:, ids.shape[1] :].tolist()]


@torch.no_grad()
def log_likelihoods(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    batch_tokens: int,
    accelerator: Accelerator,
) -> NDArray[np.float64]:
    """Return the mean log-likelihood per token, in nats, of each answer after its prompt, both
    token ids: (texts,)."""
    pairs = [[*prompt, *answer] for prompt, answer in zip(prompts, answers, strict=True)]
    names, offsets = np.arange(len(pairs)).astype(str), offsets_of(np.array([*map(len, pairs)]))
    texts = TokenSet(names, names, np.array([*chain(*pairs)], np.int32), offsets)
    losses = torch.from_numpy(token_nll(model, texts, batch_tokens, accelerator))
    of_texts = losses.split(texts.counted.tolist())
    ends = (nll[-len(answer) :] for nll, answer in zip(of_texts, answers, strict=True))
    return np.array([-float(nll.mean()) for nll in ends])
