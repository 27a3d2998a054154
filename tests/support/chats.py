"""Chat templates of the form that families of models have, in our own words, and tokenizers."""

from __future__ import annotations

from transformers import PreTrainedTokenizerBase

from mamushi.lm import tiny

_TURNS = "{% for m in messages %}"
_CHATML = "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
TEMPLATES = {
    "llama3": "{{ bos_token }}"
    + _TURNS
    + "<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>"
    + "{% endfor %}",
    # Says who it is where nobody does.
    "qwen2.5": "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n"
    + "{% endif %}"
    + _TURNS
    + _CHATML,
    # What was thought stands before the last answer alone.
    "qwen3": _TURNS
    + "<|im_start|>{{ m['role'] }}\n{% if loop.last and m.reasoning_content %}<think>\n"
    + "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m['content'] }}<|im_end|>\n"
    + "{% endfor %}",
    "smollm2": _TURNS + _CHATML,
    # Knows no system, and calls the assistant model.
    "gemma": "{{ bos_token }}"
    + _TURNS
    + "{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    + "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}",
    "mistral": "{{ bos_token }}"
    + _TURNS
    + "{% if m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}{% else %}"
    + "[INST] {{ m['content'] }} [/INST]{% endif %}{% endfor %}",
}
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
