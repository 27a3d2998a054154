"""What stands before and behind a text: what the model's own tokenizer puts there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tokenizers import Tokenizer, processors
from transformers import AutoTokenizer

from mamushi.io.tables import read_metadata
from mamushi.lm import loading, tokens
from mamushi.lm.generate import prompt_tokens
from mamushi.lm.loading import read_tokenizer
from mamushi.lm.tiny import Family, train_tokenizer
from mamushi.lm.tokens import encode, first_token, frame
from tests.support.models import model

TEXTS = ["the cat sat", "<s>the cat</s>", "a", "on the mat the cat sat on"]
FAMILY = Family(type(model("llama").config), False, "</s>", bos="<s>")
EOS, BOS = 0, 1
NAMED = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}


def template(single: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=single, pair=f"{single} $B:1", special_tokens=[("</s>", EOS), ("<s>", BOS)]
    )


def folder_of(path: Path, post: Any, files: dict[str, Any]) -> Path:
    """A folder with a ``tokenizer.json`` of this post-processor, and JSON files beside it."""
    trained = train_tokenizer(FAMILY, TEXTS, 280).backend_tokenizer
    backend = Tokenizer.from_str(trained.to_str())
    backend.post_processor = post
    if post is None:
        stored = json.loads(backend.to_str())
        (path / "tokenizer.json").write_text(json.dumps(stored | {"post_processor": None}))
    else:
        backend.save(str(path / "tokenizer.json"))
    for name, content in files.items():
        (path / name).write_text(json.dumps(content))
    return path


CONFIG = {"config.json": {"model_type": "llama", "bos_token_id": BOS, "eos_token_id": EOS}}
TEMPLATES: dict[str, tuple[Any, list[int], list[int]]] = {
    "BOS": (template("<s> $A"), [BOS], []),
    "BOS and EOS": (template("<s> $A </s>"), [BOS], [EOS]),
    "EOS": (template("$A </s>"), [], [EOS]),
    "EOS as BOS": (template("</s> $A"), [EOS], []),
    "two": (template("</s> <s> $A"), [EOS, BOS], []),
    "of RoBERTa": (processors.RobertaProcessing(("</s>", EOS), ("<s>", BOS)), [BOS], [EOS]),
    "in a sequence": (
        processors.Sequence([processors.ByteLevel(), template("<s> $A")]),
        [BOS],
        [],
    ),
}
BESIDE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "config": CONFIG,
    "names": {"tokenizer_config.json": NAMED},
    "special tokens map": {"special_tokens_map.json": NAMED},
    "flag on": {"tokenizer_config.json": NAMED | {"add_bos_token": True}},
    "flag off": {"tokenizer_config.json": NAMED | {"add_bos_token": False}},
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_text_is_what_the_tokenizer_itself_makes_of_it(
    kind: str, beside: str, tmp_path: Path
) -> None:
    post, before, behind = TEMPLATES[kind]
    folder = folder_of(tmp_path, post, BESIDE[beside])
    tokenizer = read_tokenizer(folder)
    assert frame(tokenizer) == (before, behind)
    assert first_token(tokenizer) == (before[0] if before else None)
    plain = AutoTokenizer.from_pretrained(folder)
    whole = list(encode(tokenizer, TEXTS))
    assert whole == plain(TEXTS, split_special_tokens=True)["input_ids"]
    # Nothing that a text spells is doubled, and nothing is special.
    assert [ids.count(BOS) for ids in whole] == [before.count(BOS)] * len(TEXTS)
    assert [ids[:4] for ids in whole] == list(encode(tokenizer, TEXTS, 4))
    # A model speaks on after a prompt, and not after its end.
    assert prompt_tokens(tokenizer, TEXTS[0]) == whole[0][: len(whole[0]) - len(behind)]


@pytest.mark.parametrize(
    ("beside", "before"),
    [
        *(("nothing", []), ("config", []), ("names", [BOS]), ("flag on", [BOS])),
        *(("flag off", []), ("special tokens map", [BOS])),
    ],
)
def test_a_bos_that_is_named_alone_is_put_unless_a_setting_declines_it(
    beside: str, before: list[int], tmp_path: Path
) -> None:
    tokenizer = read_tokenizer(folder_of(tmp_path, None, BESIDE[beside]))
    assert frame(tokenizer) == (before, [])
    body = tokenizer(TEXTS, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert list(encode(tokenizer, TEXTS)) == [before + ids for ids in body]


def test_the_card_and_the_token_cache_know_the_bos_of_a_template_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, template("<s> $A"), {})
    language_model = model("llama")
    language_model.resize_token_embeddings(280)
    language_model.save_pretrained(folder)
    card = loading.inspect("m", str(folder), revision=None, contaminated=False)
    assert card["bos_token_id"] == BOS
    table, path = pa.table({"id": ["a", "b"], "text": TEXTS[:2]}), tmp_path / "tokens.parquet"
    how = {"max_length": 8, "vocabulary_size": 280, "provenance": {}}
    tokens.write_tokens(path, table, read_tokenizer(folder), **how)
    # By which `embed` leaves it out of the mean.
    assert read_metadata(path)["bos_token_id"] == BOS
