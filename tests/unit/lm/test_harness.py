"""Tasks of lm-evaluation-harness: one clear line without it, and its own numbers with it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.lm import harness, loading, parameters, storage, tiny
from tests.support.models import PARTS, SIZES
from tests.support.stage_files import WORDS, write_base

ASKED = [
    {"prompt": "the cat sat on", "choices": [" a mat", " the dog"], "answer": 0},
    {"prompt": "a dog saw", "choices": [" the cat", " run far and on"], "answer": 1},
    {"prompt": "the mat and", "choices": [" cat", " dog"], "answer": 1},
]


def own_task(folder: Path) -> Path:
    """A task of multiple choice with its data in a file."""
    data = folder / "asked.jsonl"
    data.write_text("".join(f"{json.dumps(each)}\n" for each in ASKED), encoding="utf-8")
    task = folder / "cats.yaml"
    lines = [
        "task: cats",
        "dataset_path: json",
        f"dataset_kwargs: {{data_files: {{test: {data}}}}}",
        "output_type: multiple_choice",
        "test_split: test",
        "doc_to_text: '{{prompt}}'",
        "doc_to_choice: '{{choices}}'",
        "doc_to_target: '{{answer}}'",
        "target_delimiter: ''",
        "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]",
    ]
    task.write_text("\n".join(lines), encoding="utf-8")
    return task


def test_without_the_harness_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lm_eval.tasks", None)
    with pytest.raises(UserError) as caught:
        harness.require(["arc_easy"])
    said = str(caught.value)
    assert said.startswith("utility.tasks: lm-evaluation-harness cannot be imported")
    assert "pip install 'mamushi-unlearn[harness]'" in said and "\n" not in said


def test_an_unknown_task_is_named() -> None:
    pytest.importorskip("lm_eval.tasks")
    harness.require(["arc_easy"])
    with pytest.raises(UserError, match=r"^utility.tasks: .*knows no task 'arc_eazy'"):
        harness.require(["arc_easy", "arc_eazy"])


@pytest.mark.parametrize("unlearned", [False, True])
def test_scores_are_those_of_the_harness_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlearned: bool
) -> None:
    """Against a plain loop over the choices, and against the harness on the exported model."""
    lm_eval = pytest.importorskip("lm_eval")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    write_base(tmp_path)
    words: list[str] = []
    model = loading.open_model(tmp_path / "card.json")
    blocks = PARTS | {"train_input_embedding": False, "train_output_head": False}
    for name, parts, seed in (("trained", PARTS, 1), ("unlearned", blocks, 2)):
        other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], seed)
        parameters.freeze(other, parts)
        path = tmp_path / f"{name}.safetensors"
        storage.save_trained(path, other, {})
        if name == "trained" or unlearned:
            storage.overlay(path, model)
            words.append(f"--{name}={path}")
    task = own_task(tmp_path)
    opened = {"training": PARTS, "precision": "fp32"}
    if unlearned:
        opened["unlearned"] = {"trained_blocks": PARTS["trained_blocks"]}
    settings = {"model": opened, "questions": {"tasks": {"tasks": [str(task)]}}, "code": "c"}
    words += [f"--model-card={tmp_path / 'card.json'}", f"--tasks={tmp_path / 'out.parquet'}"]
    assert main(["ask", *words, f"--settings={json.dumps(settings)}"]) == 0
    (row,) = read_table(tmp_path / "out.parquet", schemas.TASK_SCORES).to_pylist()
    assert (row["task"], row["metric"]) == ("cats", "acc")

    tokenizer = loading.open_tokenizer(tmp_path / "card.json")
    right = [by_hand(model, tokenizer, asked) == asked["answer"] for asked in ASKED]
    share = sum(right) / len(right)
    assert row["value"] == pytest.approx(share)
    assert row["error"] == pytest.approx(math.sqrt(share * (1 - share) / (len(right) - 1)))

    model.save_pretrained(tmp_path / "exported")
    tokenizer.save_pretrained(tmp_path / "exported")
    results = lm_eval.simple_evaluate(
        "hf",
        model_args={"pretrained": str(tmp_path / "exported"), "device": "cpu", "dtype": "float32"},
        tasks=[str(task)],
        task_manager=harness.require([str(task)]),
    )["results"]["cats"]
    assert (row["value"], row["error"]) == pytest.approx(
        (results["acc,none"], results["acc_stderr,none"])
    )


@torch.inference_mode()
def by_hand(model: Any, tokenizer: Any, asked: dict[str, Any]) -> int:
    """The likelier choice after the prompt."""
    start, sums = tokenizer(asked["prompt"])["input_ids"], []
    for choice in asked["choices"]:
        ids = tokenizer(asked["prompt"] + choice)["input_ids"]
        logits = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), dim=-1)
        sums.append(sum(float(logits[i - 1, ids[i]]) for i in range(len(start), len(ids))))
    return int(sums[1] > sums[0])
