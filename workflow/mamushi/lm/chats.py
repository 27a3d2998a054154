"""Conversations as token ids, by the chat template of a model's tokenizer, and which of them the
assistant says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mamushi.data.conversations import ASSISTANT, TOOLS, TURNS
from mamushi.errors import located

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

CHATS = f"label_{TURNS}"
"""Column of the examples with the turns of a conversation."""
GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
"""What a template has before the words of the assistant, if it marks them."""
_PROBES = ("a", "b")
_Turns = Sequence[dict[str, Any]]


_Rendered = Callable[[_Turns, bool], str]
"""Renders turns by a template, with the header of an answer behind them if asked for."""


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
    for answers whose places it does not show.
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
    tokenizer: PreTrainedTokenizerBase, turns: _Turns, tools: list[Any] | None
) -> tuple[list[int], list[bool]]:
    """Return the token ids of a conversation, and which of them the assistant says: as the template
    marks them, else by ``answer_spans``."""
    if GENERATION.search(tokenizer.get_chat_template(tools=tools)):
        options: dict[str, Any] = {"return_dict": True, "return_assistant_tokens_mask": True}
        encoded = tokenizer.apply_chat_template(turns, tools=tools, tokenize=True, **options)
        return encoded["input_ids"], [*map(bool, encoded["assistant_masks"])]

    def rendered(some: _Turns, header: bool) -> str:
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": header}
        return str(tokenizer.apply_chat_template(some, tools=tools, **options))

    whole = rendered(turns, False)
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    answered = [False] * len(encoded["input_ids"])
    for start, stop in answer_spans(rendered, turns, tokenizer.eos_token or ""):
        for place, (first, behind) in enumerate(encoded["offset_mapping"]):
            answered[place] |= first < stop and behind > start
    return encoded["input_ids"], answered


def answer_spans(rendered: _Rendered, turns: _Turns, end: str) -> Iterator[tuple[int, int]]:
    """Give of each answer its first character in the rendered conversation, behind the header that
    a model is given, and the one behind its last, which is that of the end of its turn.

    Found by rendering what comes before, with the header, and the same with the turn. A template
    may leave the beginning of an answer out where turns follow, as what was reasoned in it, and put
    an ``end`` behind the last turn. Raises ``ValueError`` where a conversation goes on otherwise
    than it began.
    """
    whole = rendered(turns, False)
    for place, turn in enumerate(turns):
        if turn["role"] != ASSISTANT:
            continue
        before = rendered(turns[:place], False) if place else ""
        opened = rendered(turns[:place], True) if place else ""
        if opened == before:
            # A template without such a header, or nothing before it.
            probes = ({"role": ASSISTANT, "content": words} for words in _PROBES)
            first, second = (rendered([*turns[:place], probe], False) for probe in probes)
            opened = first[: _shared(first, second)]
        start, through = _shared(opened, whole), rendered(turns[: place + 1], False)
        # What ends a whole conversation ends no turn within one.
        ends = (through[start:], through[start:].removesuffix(end))
        pieces = (words[at:] for words in ends for at in range(len(words)))
        answer = next((words for words in pieces if whole.startswith(words, start)), "")
        if start < _shared(opened, before) or not (
            whole.startswith(through[:start]) and answer.strip()
        ):
            problem = f"where turn {place + 1} stands changes with those behind it"
            raise ValueError(f"{problem}; put {{% generation %}} around what the assistant says")
        yield start, start + len(answer)


def _shared(first: str, second: str) -> int:
    """Return how many first characters two texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
