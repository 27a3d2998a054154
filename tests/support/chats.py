"""Chat templates of the form that families of models have, in our own words, and tokenizers."""

from __future__ import annotations

from collections.abc import Callable

from transformers import PreTrainedTokenizerBase

from mamushi.lm import tiny

_TURNS = "{% for m in messages %}"
_CALLS = "{% for t in m.tool_calls or [] %}{{ t | tojson }}{% endfor %}"
_TOOLS = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
Said = Callable[[str], str]


def _header(words: str) -> str:
    return "{% endfor %}{% if add_generation_prompt %}" + words + "{% endif %}"


def _chatml(said: Said, thought: str = "") -> str:
    words = thought + "{{ m['content'] }}" + _CALLS + "<|im_end|>\n"
    turn = "<|im_start|>{{ m['role'] }}\n" + said(words)
    return _TURNS + turn + _header("<|im_start|>assistant\n")


_MAKE: dict[str, Callable[[Said], str]] = {
    "llama3": lambda said: (
        "{{ bos_token }}"
        + _TOOLS
        + _TURNS
        + "<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
        + said("{{ m['content'] | trim }}" + _CALLS + "<|eot_id|>")
        + _header("<|start_header_id|>assistant<|end_header_id|>\n\n")
    ),
    # Says who it is where nobody does.
    "qwen2.5": lambda said: (
        "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help."
        + _TOOLS
        + "<|im_end|>\n{% endif %}"
        + _chatml(said)
    ),
    # What was thought stands before the last answer alone.
    "qwen3": lambda said: (
        _TOOLS
        + _chatml(
            said,
            "{% if loop.last and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>"
            "\n\n{% endif %}",
        )
    ),
    "smollm2": _chatml,
    # Knows no system, and calls the assistant model.
    "gemma": lambda said: (
        "{{ bos_token }}"
        + _TURNS
        + "{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        + "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
        + said("{{ m['content'] | trim }}<end_of_turn>\n")
        + _header("<start_of_turn>model\n")
    ),
    # Has no header for an answer.
    "mistral": lambda said: (
        "{{ bos_token }}"
        + _TURNS
        + "{% if m['role'] == 'assistant' %} "
        + said("{{ m['content'] }}{{ eos_token }}")
        + "{% else %}[INST] {{ m['content'] }} [/INST]{% endif %}{% endfor %}"
    ),
}
TEMPLATES = {name: make(lambda words: words) for name, make in _MAKE.items()}
MARKED = {
    name: make(
        lambda words: (
            "{% if m['role'] == 'assistant' %}{% generation %}"
            f"{words}{{% endgeneration %}}{{% else %}}{words}{{% endif %}}"
        )
    )
    for name, make in _MAKE.items()
}
"""The same with the keyword by which transformers and TRL know what the assistant says."""
_SPECIAL = {
    "llama3": ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "gemma": ["<start_of_turn>", "<end_of_turn>"],
    "mistral": ["[INST]", "[/INST]"],
}
_FAMILY = {"llama3": "llama", "gemma": "gemma2", "mistral": "llama"}
_WORDS = "system user assistant model What is the number of cats ? Be brief . It has seven words"


def chat_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """A small tokenizer with a template, or ``none``."""
    family = tiny.FAMILIES[_FAMILY.get(name, "qwen2")]
    made = tiny.train_tokenizer(family, [_WORDS] * 3, 320)
    if name != "none":
        tokens = _SPECIAL.get(name, ["<|im_start|>", "<|im_end|>"])
        made.add_special_tokens({"additional_special_tokens": tokens})
        made.chat_template = TEMPLATES[name]
    return made
