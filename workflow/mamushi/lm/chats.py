"""Conversations as token ids, by the chat template of a model's tokenizer, and which of them the
assistant says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mamushi.data.conversations import TOOLS, TURNS
from mamushi.errors import located

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

CHATS = f"label_{TURNS}"
"""Column of the examples with the turns of a conversation."""
GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
"""What a template has before the words of the assistant, if it marks them."""


def encode_chats(
    tokenizer: PreTrainedTokenizerBase,
    chats: Iterable[tuple[str, str]],
    max_length: int,
    *,
    answers: bool = False,
) -> Iterator[tuple[list[int], list[bool]]]:
    """Give the first ``max_length`` token ids of each conversation, of which the id and the turns
    as JSON come in, by the tokenizer's chat template: what a training on it sees, as TRL's does;
    and which of them the assistant says, all of them but for ``answers``.

    Nothing stands around it, and what spells a special token in it is that token: the template
    writes them, and so do people who know it. Raises what the template raises, and ``ValueError``
    for ``answers`` that it does not mark.
    """
    for name, turns_as_json in chats:
        chat = json.loads(turns_as_json)
        turns, tools = (chat["messages"], chat[TOOLS]) if isinstance(chat, dict) else (chat, None)
        with located(f"example {name} in the chat template"):
            if answers:
                ids, answered = _answered(tokenizer, turns, tools)
            else:
                ids = tokenizer.apply_chat_template(turns, tools=tools, tokenize=True)["input_ids"]
                answered = [True] * len(ids)
        yield ids[:max_length], answered[:max_length]


def _answered(
    tokenizer: PreTrainedTokenizerBase, turns: Sequence[dict[str, Any]], tools: list[Any] | None
) -> tuple[list[int], list[bool]]:
    """Return the token ids of a conversation, and which of them the assistant says, as the template
    marks them."""
    if not GENERATION.search(tokenizer.get_chat_template(tools=tools)):
        raise ValueError("does not mark what the assistant says; put {% generation %} around it")
    options: dict[str, Any] = {"return_dict": True, "return_assistant_tokens_mask": True}
    encoded = tokenizer.apply_chat_template(turns, tools=tools, tokenize=True, **options)
    return encoded["input_ids"], [*map(bool, encoded["assistant_masks"])]
