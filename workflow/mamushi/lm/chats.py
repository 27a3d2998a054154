"""Conversations as token ids, by the chat template of a model's tokenizer, and which of them the
assistant says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mamushi.errors import located
from mamushi.io.domains import TOOLS, TURNS

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
    as JSON come in, by the tokenizer's chat template, as TRL does, with nothing around it; and
    which of them the assistant says, all of them but for ``answers``. Raises what the template
    raises, and ``ValueError`` for ``answers`` that it does not mark."""
    for name, turns_as_json in chats:
        chat = json.loads(turns_as_json)
        turns, tools = (chat["messages"], chat[TOOLS]) if isinstance(chat, dict) else (chat, None)
        with located(f"example {name} in the chat template"):
            if answers and not GENERATION.search(tokenizer.get_chat_template(tools=tools)):
                do = "put {% generation %} around it"
                raise ValueError(f"does not mark what the assistant says; {do}")
            encoded: Any = tokenizer.apply_chat_template(
                turns, tools=tools, return_dict=True, return_assistant_tokens_mask=answers
            )
        ids = encoded["input_ids"]
        said = map(bool, encoded["assistant_masks"] if answers else [True] * len(ids))
        yield ids[:max_length], [*said][:max_length]
