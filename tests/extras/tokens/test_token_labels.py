"""Spans of tokens as labels for other trainers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import load_dataset
from transformers import DataCollatorForSeq2Seq

from mamushi.cli import main
from mamushi.io import paths, schemas
from mamushi.io.files import sha256, write_json
from mamushi.io.tables import read_table, write_table
from mamushi.lm import tiny
from mamushi_extras.tokens.masks import digest_of_spans
from tests.support.models import SIZES
from tests.support.score_files import write_examples

CELL = {"dataset": "mine", "model": "tiny", "seed": 0, "selector": "words", "beta": "0.25"}
TEXTS = {"f": [9, 1, 2, 3], "r": [9, 4], "held": [9, 5]}


def test_a_masked_token_has_the_label_that_no_loss_counts(run: Path, tmp_path: Path) -> None:
    """Read as axolotl does: by `datasets`, with all of its columns padded into tensors."""
    out = run / "labels.jsonl"
    assert main(["export", str(spans(run)), "--to", "labels", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == [
        {"input_ids": [9, 1, 2], "attention_mask": [1] * 3, "labels": [9, -100, 2]},
        {"input_ids": [9, 4], "attention_mask": [1] * 2, "labels": [9, 4]},
    ]
    loaded = load_dataset("json", data_files=str(out), cache_dir=str(tmp_path), split="train")
    tokenizer = tiny.build({"family": "llama", **SIZES}, ["a b"], 0)[1]
    tokenizer.pad_token = tokenizer.eos_token
    batch = DataCollatorForSeq2Seq(tokenizer)([*loaded])
    assert {*batch} == {"input_ids", "attention_mask", "labels"}
    assert sorted(batch["labels"].tolist()) == [[9, -100, 2], [9, 4, -100]]


def test_where_answers_alone_count_all_else_has_that_label(tmp_path: Path) -> None:
    """The labels that TRL gives a conversation, see test_chats, without what is masked of them."""
    root, out = tmp_path / "results", tmp_path / "labels.jsonl"
    write(root, [[False, False, True, True], [False, True]])
    listed(root, {"id": ["f"], "start": [1], "stop": [3]}, 64)
    assert main(["export", str(spans(root)), "--to", "labels", "--out", str(out)]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["input_ids"] for row in found] == [[9, 1, 2, 3], [9, 4]]
    assert [row["labels"] for row in found] == [[-100, -100, -100, 3], [-100, 4]]


def spans(run: Path) -> Path:
    return paths.under(run, paths.SPANS, **CELL)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose tokens were scored as far as the third."""
    root = tmp_path / "results"
    write(root)
    listed(root, {"id": ["f"], "start": [1], "stop": [2]}, 3)
    return root


def listed(root: Path, columns: dict[str, list[Any]], length: int) -> None:
    """Spans with the manifest that belongs to them."""
    write_table(spans(root), schemas.SPANS, columns)
    rows = read_table(spans(root), schemas.SPANS).to_pylist()
    files = {"examples": paths.EXAMPLES, "tokens": paths.TOKENS}
    inputs = {name: sha256(paths.under(root, file, **CELL)) for name, file in files.items()}
    manifest = {"spans_sha256": digest_of_spans(rows), "max_length": length}
    manifest |= {"provenance": {"inputs": inputs}}
    write_json(paths.under(root, paths.SPANS_MANIFEST, **CELL), manifest)


def write(root: Path, counted: list[list[bool]] | None = None) -> None:
    section = ["inference", "inference", "evaluation"]
    examples = paths.under(root, paths.EXAMPLES, dataset="mine")
    write_examples(examples, [*TEXTS], ["forget", "retain", "retain"], section=section)
    tokens = paths.under(root, paths.TOKENS, dataset="mine", model="tiny")
    stored = {"id": list(TEXTS), "tokens": [np.int32(each) for each in TEXTS.values()]}
    stored |= {} if counted is None else {"counted": [*counted, [True, True]]}
    write_table(tokens, schemas.TOKENS, stored, metadata={"max_length": 64})
