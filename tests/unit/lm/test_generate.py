"""Greedy continuations against a plain argmax loop, prompts, and likelihoods token by token."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from mamushi.lm import device, tiny
from mamushi.lm.generate import continuations, end_tokens, log_likelihoods, prompt_tokens
from tests.support.models import FAMILIES, VOCABULARY, model

PROMPTS = ["w5 w9 w30", "w7", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12"]
BOS, EOS = VOCABULARY - 2, VOCABULARY - 1
CHAT = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %} [answer]{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """A word a token: w0, w1, ... up to the model's vocabulary, whose last two are BOS and EOS."""
    words = {f"w{i}": i for i in range(VOCABULARY - 2)} | {"<s>": BOS, "</s>": EOS}
    plain = Tokenizer(models.WordLevel(words, unk_token="w0"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<s>", eos_token="</s>")


def endless(family: str, seed: int = 0) -> PreTrainedModel:
    """A model without an end of text, and with a cache switched off as ``open_model`` has it."""
    language_model = model(family, seed)
    language_model.config.eos_token_id = language_model.generation_config.eos_token_id = None
    language_model.config.use_cache = False
    return language_model


def said(
    language_model: PreTrainedModel, words: PreTrainedTokenizerFast | None = None
) -> list[list[int]]:
    accelerator = device.accelerator("fp32")
    found = continuations(language_model, words or tokenizer(), PROMPTS, 20, accelerator)
    assert found["prompt"] == PROMPTS
    assert found["prompt_tokens"] == [prompt_tokens(tokenizer(), prompt) for prompt in PROMPTS]
    tokens: list[list[int]] = found["tokens"]
    return tokens


@torch.no_grad()
def by_hand(language_model: PreTrainedModel, prompt: str, new_tokens: int = 20) -> list[int]:
    """The likeliest token, again and again, each from a fresh pass over everything before it."""
    stop = end_tokens(language_model, tokenizer())
    ids = prompt_tokens(tokenizer(), prompt)
    start = len(ids)
    while len(ids) < start + new_tokens and (len(ids) == start or ids[-1] not in stop):
        logits = language_model(torch.tensor([ids]), use_cache=False).logits
        ids.append(int(logits[0, -1].argmax()))
    return ids[start:]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_greedy_equals_a_plain_loop_without_a_cache(family: str, seed: int) -> None:
    language_model = endless(family, seed)
    found = said(language_model)
    assert found == [by_hand(language_model, prompt) for prompt in PROMPTS]
    assert max(map(len, found)) == 20
    # Models that ran into one token at once would agree with anything.
    assert len({token for tokens in found for token in tokens}) > 3


@pytest.mark.parametrize("place", ["tokenizer", "config", "generation_config"])
def test_an_end_of_text_stops_and_is_kept(place: str) -> None:
    language_model, words = endless("qwen2"), tokenizer()
    expected = said(language_model)
    end = expected[0][4]
    if place == "tokenizer":
        words.eos_token = f"w{end}"
    elif place == "config":
        language_model.config.eos_token_id = end
    else:
        language_model.generation_config.eos_token_id = [end, EOS]
    first = expected[0].index(end)
    assert said(language_model, words=words)[0] == expected[0][: first + 1]


def test_a_prompt_is_in_a_template_where_there_is_one() -> None:
    """Special tokens that it spells are plain text."""
    words = tiny.train_tokenizer(tiny.FAMILIES["llama"], ["river", "stone"], 300)
    words.chat_template = CHAT
    for prompt in ("river stone", f"river {words.eos_token} {words.bos_token} stone"):
        first, *ids = prompt_tokens(words, prompt)
        assert first == words.bos_token_id and not {first, words.eos_token_id} & {*ids}
        assert words.decode(ids) == f"[user] {prompt} [answer]"


SAID = [[3, 4, 5], [6], [7, 7, 7, 7, 7, 8], [49, 0]]
READ = [[1], [1, 2, 3, 4], [9, 8], [5, 5, 5]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch_tokens", [1, 9, 1000])
def test_likelihoods_equal_a_loop_over_tokens(family: str, batch_tokens: int) -> None:
    language_model = model(family)
    accelerator = device.accelerator("fp32")
    found = log_likelihoods(language_model, READ, SAID, batch_tokens, accelerator)
    for value, prompt, tokens in zip(found, READ, SAID, strict=True):
        total = 0.0
        for place, token in enumerate(tokens):
            with torch.no_grad():
                logits = language_model(torch.tensor([prompt + tokens[:place]])).logits[0, -1]
            total += float(torch.log_softmax(logits.double(), dim=-1)[token])
        assert value == pytest.approx(total / len(tokens), abs=2e-5)
