"""What a model says after a prompt, greedily, and how likely another model finds what was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from jinja2 import TemplateError
from numpy.typing import NDArray
from transformers import GenerationConfig, PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.errors import UserError
from mamushi.lm.attention import supports
from mamushi.lm.batches import batches, collate
from mamushi.lm.loading import padding
from mamushi.lm.loss import batch_nll
from mamushi.lm.sharding import through
from mamushi.lm.tokens import encode
from mamushi.running.progress import Progress

TOGETHER = 16
"""Beginnings of texts that are completed at a time."""


def prompt_tokens(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """Token ids of a prompt, after which the model is to speak.

    Where the tokenizer has a chat template, the prompt is what a user says in it, and the template
    alone decides on the BOS; else it is plain text after the BOS, if the tokenizer defines one.
    A prompt that spells a special token is plain text in both. Raises ``UserError`` when the
    template refuses it or no token comes out.
    """
    if tokenizer.chat_template is None:
        (ids,) = encode(tokenizer, [prompt])
    else:
        try:
            ids = tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                sanitize_control_tokens=True,
            )["input_ids"]
        except (TemplateError, ValueError) as error:
            raise UserError(
                f"the tokenizer's chat template refuses the prompt {prompt!r} ({error})",
                where="probe.prompts",
                do="remove the template from the model's folder, or use another model",
            ) from error
    if not ids:
        raise UserError(
            f"the tokenizer gives no token for the prompt {prompt!r}",
            where="probe.prompts",
            do="change the prompt",
        )
    return [int(token) for token in ids]


def ends(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens that end a text, sorted: what the tokenizer, the model's configuration and its
    generation configuration name, since only the last knows how a chat model ends its turn."""
    text = model.config.get_text_config(decoder=True)
    named = (tokenizer.eos_token_id, text.eos_token_id, model.generation_config.eos_token_id)
    lists = (ids if isinstance(ids, list) else [ids] for ids in named)
    return sorted({int(token) for ids in lists for token in ids if token is not None})


def continuations(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    new_tokens: int,
    accelerator: Accelerator,
) -> dict[str, list[Any]]:
    """Columns of the artifact ``continuations``: a row per prompt.

    Greedy: always the likeliest next token, at most ``new_tokens`` of them, up to and with the
    token that ends the text. Of the model's own generation configuration nothing but its ends
    counts, so that no sampling temperature or repetition penalty enters a comparison. Prompts go
    one by one: padding would change the last bits, and with them a close decision. Raises
    ``UserError`` when a prompt and its continuation do not fit the model's positions.
    """
    positions = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    columns: dict[str, list[Any]] = {"prompt": [], "prompt_tokens": [], "tokens": []}
    model.eval()
    greedy = _greedy(ends(model, tokenizer), padding(tokenizer), new_tokens)
    with _only(greedy, model), Progress(len(prompts), "generate", "prompt") as progress:
        for prompt in prompts:
            ids = prompt_tokens(tokenizer, prompt)
            if positions is not None and len(ids) + new_tokens > positions:
                raise UserError(
                    f"the prompt {prompt!r} has {len(ids)} tokens, and with {new_tokens} new ones "
                    f"does not fit the model's {positions} positions",
                    where="probe.new_tokens",
                    do=f"lower it to {positions - len(ids)} or less"
                    if len(ids) < positions
                    else "shorten the prompt",
                )
            given = torch.tensor([ids], device=accelerator.device)
            with accelerator.autocast():
                about = {"attention_mask": torch.ones_like(given), "generation_config": greedy}
                said = through(model, partial(model.generate, given, **about))
            columns["prompt"].append(prompt)
            columns["prompt_tokens"].append(ids)
            columns["tokens"].append(said[0, len(ids) :].tolist())
            progress.advance()
    return columns


def _greedy(eos: list[int], pad_token: int, new_tokens: int) -> GenerationConfig:
    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=new_tokens,
        use_cache=True,
        eos_token_id=eos or None,
        pad_token_id=pad_token,
    )


def completions(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    beginnings: Sequence[NDArray[np.int32]],
    lengths: Sequence[int],
    samples: int,
    accelerator: Accelerator,
) -> list[list[list[int]]]:
    """How the model goes on after each beginning (token ids), for at most so many tokens each.

    A list by beginning: first the greedy one, then ``samples`` that are drawn from the model's own
    distribution (temperature 1, no truncation), each up to the token that ends the text, without
    it. The draws are the same for every model. Beginnings that agree in both lengths go together,
    a fixed number at a time: they need no padding.
    """
    model.eval()
    eos, pad = ends(model, tokenizer), padding(tokenizer)
    alike: dict[tuple[int, int], list[int]] = {}
    for i, (tokens, wanted) in enumerate(zip(beginnings, lengths, strict=True)):
        alike.setdefault((len(tokens), wanted), []).append(i)
    found: list[list[list[int]]] = [[] for _ in beginnings]
    with Progress(len(beginnings), "complete", "text") as progress:
        for (given, wanted), rows in alike.items():
            for first in range(0, len(rows), TOGETHER):
                part = rows[first : first + TOGETHER]
                ids = torch.tensor(
                    np.stack([beginnings[i] for i in part]).astype(np.int64),
                    device=accelerator.device,
                )
                # By the first of them, so that the draws do not depend on what was before.
                torch.manual_seed(part[0])
                how = [_greedy(eos, pad, wanted)] + [_sampled(eos, pad, wanted)] * samples
                for config in how:
                    about = {"attention_mask": torch.ones_like(ids), "generation_config": config}
                    with _only(config, model), accelerator.autocast():
                        said = through(model, partial(model.generate, ids, **about))
                    for i, tokens in zip(part, said[:, given:].tolist(), strict=True):
                        stop = next((t for t, one in enumerate(tokens) if one in eos), None)
                        found[i].append(tokens[:stop])
                progress.advance(len(part))
    return found


def _sampled(eos: list[int], pad_token: int, new_tokens: int) -> GenerationConfig:
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=new_tokens,
        use_cache=True,
        eos_token_id=eos or None,
        pad_token_id=pad_token,
    )


@contextmanager
def _only(chosen: GenerationConfig, model: PreTrainedModel) -> Iterator[None]:
    """Within the block ``chosen`` is all that there is: `generate` fills what it leaves open from
    the model's generation configuration."""
    own = model.generation_config
    model.generation_config = chosen
    try:
        yield
    finally:
        model.generation_config = own


@torch.no_grad()
def log_likelihoods(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    said: Sequence[Sequence[int]],
    batch_tokens: int,
    accelerator: Accelerator,
) -> NDArray[np.float64]:
    """Mean log-likelihood per token, in nats, of each continuation after its prompt: (texts,).

    ``mean_t log p(y_t | prompt, y_<t)`` for the tokens ``y`` of ``said``; the prompt's own tokens
    are read and not counted. Prompts and continuations are token ids, at least one in each. Raises
    ``UserError`` when the model does not know a token, or the result is not finite.
    """
    model.eval()
    texts = [np.array([*a, *b], dtype=np.int32) for a, b in zip(prompts, said, strict=True)]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    counts = np.array([len(tokens) for tokens in said], dtype=np.int64)
    known = model.get_input_embeddings().num_embeddings
    largest = max((int(text.max()) for text in texts), default=0)
    if largest >= known:
        raise UserError(
            f"token {largest} was said, but the model that is to judge knows {known} tokens",
            do="compare models with one tokenizer",
        )
    means = np.zeros(len(texts), dtype=np.float64)
    shared = supports(model)
    for rows in batches(lengths, batch_tokens, shared=shared):
        batch = collate([texts[i] for i in rows], accelerator.device, shared=shared)
        with accelerator.autocast():
            nll = batch_nll(model, batch).double().cpu()
        for part, i in zip(nll.split((lengths[rows] - 1).tolist()), rows, strict=True):
            means[i] = -float(part[-counts[i] :].mean())
    if not np.isfinite(means).all():
        raise UserError(
            "the log-likelihood of a continuation is not finite: the model that judges diverged",
            do="lower training.learning_rate",
        )
    return means
