"""Conversations as tokens: what the template writes, token by token, and plain text without one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
import trl
from accelerate.state import AcceleratorState, PartialState
from transformers import PreTrainedTokenizerBase
from trl import chat_template_utils
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import tiny
from mamushi.lm.tokens import CHATS, read_tokens, write_tokens
from tests.support.score_files import write_examples

CHAT = [
    {"role": "user", "content": "What is seven?"},
    {"role": "assistant", "content": "It is a number. <|im_end|>", "reasoning_content": "Brief."},
]
NAMES = ("llama3", "qwen2_5", "qwen3", "gemma", "phi3")
"""Families whose templates TRL has, as they are and with marks around what the assistant says."""
SPECIAL = {
    "llama3": ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "gemma": ["<start_of_turn>", "<end_of_turn>"],
    "phi3": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"],
}
FAMILY = {"llama3": "llama", "gemma": "gemma2", "phi3": "llama"}
SAID = "system user assistant model What is the number of cats ? Be brief . It has seven words"


def chat_tokenizer(name: str, kind: str = "chat_template") -> PreTrainedTokenizerBase:
    """A small tokenizer with a family's template."""
    of = name.partition("_")[0]
    tokenizer = tiny.train_tokenizer(tiny.FAMILIES[FAMILY.get(of, "qwen2")], [SAID] * 3, 320)
    tokens = SPECIAL.get(of, ["<|im_start|>", "<|im_end|>"])
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    tokenizer.chat_template = getattr(chat_template_utils, f"{name}_{kind}")
    return tokenizer


def tokens_of(
    path: Path,
    name: str,
    chats: list[Any],
    most: int = 999,
    tokenizer: Any = None,
    answers: bool = False,
) -> Any:
    """The token cache of conversations: the rows, and the metadata."""
    columns = {"id": [f"c{n}" for n in range(len(chats))], "text": ["user: words"] * len(chats)}
    columns |= {CHATS: [json.dumps(turns) for turns in chats]}
    options: dict[str, Any] = {"max_length": most, "vocabulary_size": 999, "provenance": {}}
    tokenizer = tokenizer or chat_tokenizer(name)
    write_tokens(path, pa.table(columns), tokenizer, answers=answers, **options)
    return read_table(path, schemas.TOKENS)["tokens"].to_pylist(), read_metadata(path)


@pytest.fixture
def accelerators() -> Iterator[None]:
    """Keeps what this process has said to accelerate, which a configuration of TRL resets."""
    before = [(state, dict(state._shared_state)) for state in (AcceleratorState, PartialState)]
    yield
    for state, shared in before:
        state._shared_state.clear()
        state._shared_state.update(shared)


def prepared(tokenizer: Any, rows: list[dict[str, Any]], folder: Path, **options: Any) -> Any:
    """What TRL makes of rows before it trains on them: columns input_ids and labels."""
    trainer = object.__new__(trl.SFTTrainer)
    trainer._is_vision_dataset, trainer._tokenizer, trainer.chat_template = False, tokenizer, None
    trainer.completion_only_loss = False
    if "assistant_only_loss" in options and not has_generation_markers(tokenizer.chat_template):
        trainer.chat_template = get_training_chat_template(tokenizer)
    config = trl.SFTConfig(str(folder), report_to=[], bf16=False, **{"max_length": 999, **options})
    data = datasets.Dataset.from_list(rows)
    return trainer._prepare_dataset(data, tokenizer, config, False, None, "train")


@pytest.mark.usefixtures("accelerators")
@pytest.mark.parametrize("name", NAMES)
def test_they_are_the_tokens_that_trl_trains_on(name: str, tmp_path: Path) -> None:
    """With one BOS, where the template writes it."""
    tokenizer, chats = chat_tokenizer(name), [CHAT, CHAT[:1], [*CHAT, *CHAT]]
    theirs = prepared(tokenizer, [{"messages": turns} for turns in chats], tmp_path, max_length=30)
    ours, metadata = tokens_of(tmp_path / "tokens.parquet", name, chats, most=30)
    assert ours == theirs["input_ids"][:]
    bos = tokenizer.bos_token_id if name in ("llama3", "gemma") else None
    assert metadata["bos_token_id"] == bos and ours[0].count(bos) == (bos is not None)


# Tools, and the loss on answers -------------------------------------------------------------------

CALLED = [
    CHAT[0],
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": "number", "arguments": {"of": 7}}],
    },
    {"role": "tool", "content": "seven"},
    {"role": "assistant", "content": "It is seven."},
]
TOLD = [*CHAT, {"role": "user", "content": "It?"}, {"role": "assistant", "content": "It is It."}]


def labels_of(path: Path, tokenizer: Any, chats: list[Any], most: int = 999) -> list[list[int]]:
    """The labels of a training on the answers alone, by the token cache."""
    tokens_of(path, "", chats, most, tokenizer, answers=True)
    ids = [f"c{n}" for n in range(len(chats))]
    examples = path.with_name("examples.parquet")
    write_examples(examples, ids, ["forget"] * len(ids))
    texts = read_tokens(path, examples, "inference", most)
    pairs = [(texts[row].tolist(), texts.weights_of(row)) for row in range(len(texts))]
    return [[i if w else -100 for i, w in zip(*pair, strict=True)] for pair in pairs]


@pytest.mark.usefixtures("accelerators")
@pytest.mark.parametrize("name", NAMES)
def test_answers_alone_are_the_labels_of_trl(name: str, tmp_path: Path) -> None:
    """Also where the conversations are cut; a template that does not mark them is refused."""
    chats = [CHAT, [*CHAT, *CHAT], TOLD, *([] if name in ("gemma", "phi3") else [CALLED])]
    plain, marked = chat_tokenizer(name), chat_tokenizer(name, "training_chat_template")
    rows = [{"messages": turns} for turns in chats]
    # What Qwen2.5 says of itself where no system does is long.
    for most in (999, 84 if name == "qwen2_5" else 40):
        theirs = prepared(marked, rows, tmp_path, max_length=most, assistant_only_loss=True)
        ours = labels_of(tmp_path / "tokens.parquet", marked, chats, most)
        assert ours == theirs["labels"][:] and {-100} < {*ours[0]}
    with pytest.raises(UserError, match="no chat template marks what the assistant says"):
        labels_of(tmp_path / "tokens.parquet", plain, chats)
