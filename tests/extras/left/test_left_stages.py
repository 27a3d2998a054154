"""Single texts and tasks of lm-evaluation-harness under a tiny model, with likelihoods by hand."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from transformers import PreTrainedModel

from mamushi.cli import main
from mamushi.io import paths
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import device, loading, parameters, storage, tiny
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import read_tokens
from mamushi_extras.left.schemas import LIKELIHOODS, TASK_SCORES, TASKS
from mamushi_extras.left.stages import model_files
from tests.support.models import ENDS_FROZEN, SIZES, training_of
from tests.support.stage_files import (
    EXECUTION,
    FILES,
    FORGET,
    WORDS,
    command,
    opened,
    write_base,
)

HELD_OUT = 4
UNLEARNED = {"trained_blocks": 2} | ENDS_FROZEN
TASK = """
task: animals
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{data}"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
metadata: {{version: 2.0}}
"""


def questions() -> list[dict[str, Any]]:
    rng = random.Random(0)
    return [
        {
            "question": " ".join(rng.choices(WORDS, k=5)),
            "choices": [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(3)],
            "answer": rng.randrange(3),
        }
        for _ in range(40)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A base model, a start's tensors, those that unlearning trained over them, and a task."""
    root = tmp_path_factory.mktemp("tasks")
    write_base(root)
    for seed, parts, name in ((1, {}, "start"), (2, UNLEARNED, "unlearned")):
        other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], seed)
        parameters.freeze(other, training_of(parts))
        storage.save_trained(root / f"{name}.safetensors", other, {})
    (root / "animals.yaml").write_text(TASK.format(data=root / "animals.jsonl"))
    (root / "animals.jsonl").write_text("\n".join(map(json.dumps, questions())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", root / "cache")
        yield root


def run_stage(stage: str, made: Path, out: Path, **settings: Any) -> int:
    files = dict(FILES) if stage == "membership" else {"model-card": "card.json"}
    files |= {"trained": "start.safetensors", "unlearned": "unlearned.safetensors"}
    words = [f"--{key}={made / name}" for key, name in files.items()]
    words += [f"--execution={json.dumps(EXECUTION)}"]
    words += [f"--settings={json.dumps({'precision': 'fp32', **settings})}"]
    return main([stage, *words, f"--out={out}"])


def model_of(made: Path) -> PreTrainedModel:
    names = ["start", "unlearned"]
    return opened(made / "card.json", *(made / f"{name}.safetensors" for name in names)).eval()


def test_membership_reads_the_model_that_was_made(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run_stage("membership", made, out, texts=100, max_length=16) == 0
    table = read_table(out, LIKELIHOODS)
    for section, count in (("inference", FORGET), ("evaluation", HELD_OUT)):
        rows = table.filter(pc.equal(table["section"], section)).to_pydict()
        files = made / "tokens.parquet", made / "examples.parquet"
        texts = read_tokens(*files, section, 16, domains=["forget"])
        assert rows["id"] == [*texts.ids]
        assert len(texts) == count
        with torch.inference_mode():
            nll = text_nll(model_of(made), texts, 64, device.accelerator("fp32"))
        assert rows["nll"] == pytest.approx(nll.nll, rel=1e-4)
        assert rows["tokens"] == nll.tokens.tolist()


@torch.no_grad()
def correct_by_hand(made: Path) -> dict[str, list[bool]]:
    """Whether each answer is the choice with the largest log-likelihood, and by its length."""
    model, tokenizer = model_of(made), loading.open_tokenizer(made / "card.json")
    correct: dict[str, list[bool]] = {"acc": [], "acc_norm": []}
    for row in questions():
        sums = []
        before = len(tokenizer(row["question"])["input_ids"])
        for choice in row["choices"]:
            ids = tokenizer(f"{row['question']} {choice}")["input_ids"]
            logits = model(torch.tensor([ids])).logits[0].double()
            odds = torch.log_softmax(logits, dim=-1)
            sums.append(sum(float(odds[i - 1, ids[i]]) for i in range(before, len(ids))))
        lengths = [len(choice) for choice in row["choices"]]
        for metric, values in (("acc", sums), ("acc_norm", np.divide(sums, lengths))):
            correct[metric].append(int(np.argmax(values)) == row["answer"])
    return correct


def test_accuracies_are_those_of_likelihoods_by_hand(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.parquet"
    asked: dict[str, Any] = {"names": [str(made / "animals.yaml")], "examples": None, "inputs": {}}
    assert run_stage("task-scores", made, out, **asked) == 0
    found = {row["metric"]: row for row in read_table(out, TASK_SCORES).to_pylist()}
    correct = correct_by_hand(made)
    assert found.keys() == correct.keys()
    for metric, right in correct.items():
        row = found[metric]
        assert row["value"] == pytest.approx(np.mean(right), abs=1e-12)
        assert row["se"] == pytest.approx(np.std(right, ddof=1) / len(right) ** 0.5)
        about = ("animals", "none", "2.0", len(right))
        assert (row["task"], row["filter"], row["version"], row["examples"]) == about
    assert len({row["value"] for row in found.values()}) == 2
    assert read_metadata(out)["lm_eval"].startswith("0.4.")


AXES = {
    **{"datasets": ["d"], "models": ["m"], "seeds": [0, 1], "selectors": ["random"]},
    **{"budgets": [0.5], "unlearners": ["npo"]},
}


def write_scores(root: Path) -> dict[tuple[int, str], float]:
    values = {}
    for place, name in enumerate(model_files(AXES, paths.TASK_ANSWERS)):
        path = root / Path(name).relative_to(paths.RESULTS)
        where = paths.wildcards(paths.TASK_ANSWERS, name)
        assert where is not None
        values[int(where["seed"]), where["arm"]] = place / 100
        path.parent.mkdir(parents=True)
        row = {"task": "animals", "metric": "acc", "filter": "none", "version": None}
        write_table(path, TASK_SCORES, [{**row, "examples": 9, "value": place / 100, "se": 0.1}])
    return values


def test_models_stand_beside_the_gold_model_of_their_seed(tmp_path: Path) -> None:
    values = write_scores(tmp_path)
    how = {"name": "tasks", "settings": {"files": model_files(AXES, paths.TASK_ANSWERS)}}
    assert main(command("publish", how, root=tmp_path, out_folder=tmp_path)) == 0
    rows = read_table(tmp_path / "tasks.parquet", TASKS).to_pylist()
    assert (tmp_path / "tasks.csv").read_text().count("\n") == len(rows) + 1
    pairs = [(row["seed"], row["method"], row["selector"], row["beta"]) for row in rows]
    of_seed = [
        *((name, None, None) for name in ("contaminated", "beta0", "gold")),
        *(("retraining", "random", 0.5), ("npo", "random", 0.5)),
    ]
    assert pairs == [(0, "base", None, None), *((s, *m) for s in (0, 1) for m in of_seed)]
    for row, (seed, arm) in zip(rows, values, strict=True):
        assert (row["value"], row["gold"]) == (values[seed, arm], values[seed, "gold"])
