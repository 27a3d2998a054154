"""Conversations as tokens: what the template writes, token by token, and plain text without one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
import trl
from accelerate.state import AcceleratorState, PartialState

from mamushi.commands import _embedder
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm.tokens import CHATS, write_tokens
from tests.support import lab
from tests.support.chats import TEMPLATES, chat_tokenizer

CHAT = [
    {"role": "user", "content": "What is seven?"},
    {"role": "assistant", "content": "It is a number. <|im_end|>", "reasoning_content": "Brief."},
]
SYSTEM = {"role": "system", "content": "Be brief."}
EXPECTED = {
    "llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nWhat is seven?<|eot_id|><|start_header_id|>"
    "assistant<|end_header_id|>\n\nIt is a number. <|im_end|><|eot_id|>",
    "qwen2.5": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is seven?<|im_end|>"
    "\n<|im_start|>assistant\nIt is a number. <|im_end|><|im_end|>\n",
    "qwen3": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is seven?<|im_end|>\n"
    "<|im_start|>assistant\n<think>\nBrief.\n</think>\n\nIt is a number. <|im_end|><|im_end|>\n",
    "smollm2": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is seven?<|im_end|>"
    "\n<|im_start|>assistant\nIt is a number. <|im_end|><|im_end|>\n",
    "gemma": "<bos><start_of_turn>user\nWhat is seven?<end_of_turn>\n<start_of_turn>model\n"
    "It is a number. <|im_end|><end_of_turn>\n",
    "mistral": "<|begin_of_text|>[INST] Be brief. [/INST][INST] What is seven? [/INST] It is a "
    "number. <|im_end|><|end_of_text|>",
}
"""What each template makes of the conversation: written by hand."""


def tokens_of(path: Path, name: str, chats: list[list[dict[str, Any]]], most: int = 999) -> Any:
    """The token cache of conversations: the rows, and the metadata."""
    columns = {"id": [f"c{n}" for n in range(len(chats))], "text": ["user: words"] * len(chats)}
    columns |= {CHATS: [json.dumps(turns) for turns in chats]}
    options: dict[str, Any] = {"max_length": most, "vocabulary_size": 999, "provenance": {}}
    write_tokens(path, pa.table(columns), chat_tokenizer(name), **options)
    return read_table(path, schemas.TOKENS)["tokens"].to_pylist(), read_metadata(path)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_conversation_is_what_its_template_writes(name: str, tmp_path: Path) -> None:
    turns = CHAT if name == "gemma" else [SYSTEM, *CHAT]
    tokenizer = chat_tokenizer(name)
    (ids,), metadata = tokens_of(tmp_path / "tokens.parquet", name, [turns])
    assert ids == tokenizer(EXPECTED[name], add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == EXPECTED[name]
    # One BOS, where the template writes it.
    assert metadata["bos_token_id"] == (ids[0] if tokenizer.bos_token else None)
    assert ids.count(tokenizer.bos_token_id) == (tokenizer.bos_token is not None)


@pytest.fixture
def accelerators() -> Iterator[None]:
    """Keeps what this process has said to accelerate, which a configuration of TRL resets."""
    before = [(state, dict(state._shared_state)) for state in (AcceleratorState, PartialState)]
    yield
    for state, shared in before:
        state._shared_state.clear()
        state._shared_state.update(shared)


@pytest.mark.usefixtures("accelerators")
@pytest.mark.parametrize("name", TEMPLATES)
def test_they_are_the_tokens_that_trl_trains_on(name: str, tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(name)
    chats = [CHAT, CHAT[:1], [*CHAT, *CHAT]]
    rows = [{"messages": turns} for turns in chats]
    trainer = object.__new__(trl.SFTTrainer)
    trainer._is_vision_dataset, trainer._tokenizer, trainer.chat_template = False, tokenizer, None
    trainer.completion_only_loss = False
    config = trl.SFTConfig(str(tmp_path), max_length=30, report_to=[], bf16=False)
    data = datasets.Dataset.from_list(rows)
    prepared = trainer._prepare_dataset(data, tokenizer, config, False, None, "train")
    ours, _ = tokens_of(tmp_path / "tokens.parquet", name, chats, most=30)
    assert ours == prepared["input_ids"][:]


def test_without_a_template_a_conversation_is_its_text(tmp_path: Path) -> None:
    (ids,), _ = tokens_of(tmp_path / "tokens.parquet", "none", [CHAT])
    assert chat_tokenizer("none").decode(ids) == "user: words"


def test_a_template_is_tried_before_a_run(tmp_path: Path) -> None:
    """What it refuses is told with the model, and so is how conversations are read."""
    lab.write_lab(tmp_path)
    folder = shutil.copytree(tmp_path / "ours", tmp_path / "gemma")
    chat_tokenizer("gemma").save_pretrained(folder)
    examples = pa.table({"id": ["a"], CHATS: [json.dumps([SYSTEM, *CHAT])]})
    with pytest.raises(UserError, match="example a: the tokenizer's chat template refuses"):
        _embedder.describe_model({"source": str(folder)}, examples)
    examples = pa.table({"id": ["a"], CHATS: [json.dumps(CHAT)]})
    for name, says in (("gemma", ", and a chat template, by which"), ("ours", "without a chat te")):
        assert says in _embedder.describe_model({"source": str(tmp_path / name)}, examples)
        assert says not in _embedder.describe_model({"source": str(tmp_path / name)})


def test_the_first_tokens_are_kept(tmp_path: Path) -> None:
    (whole,), _ = tokens_of(tmp_path / "tokens.parquet", "llama3", [CHAT])
    (ids,), metadata = tokens_of(tmp_path / "short.parquet", "llama3", [CHAT], most=7)
    assert ids == whole[:7] and metadata["max_length"] == 7


def test_a_conversation_that_the_template_refuses_is_named(tmp_path: Path) -> None:
    says = r"example c1: the tokenizer's chat template refuses this conversation \(no system role\)"
    with pytest.raises(UserError, match=says):
        tokens_of(tmp_path / "tokens.parquet", "gemma", [CHAT, [SYSTEM, *CHAT]])
