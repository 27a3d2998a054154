"""The plan of the paper's grid, on a machine without data, weights or a GPU; and what its jobs ask
of a cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi_runs.commands._bill import READING, TRAINING, UNLEARNING, Bill, Job
from mamushi_runs.commands._rates import gpu_rate
from tests.support.workflow import ROOT, environment, plan, run

SLURM = ("--profile", ROOT / "profiles/slurm")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The plan of config.yaml on SLURM: as JSON, and as it is printed."""
    folder = tmp_path_factory.mktemp("paper")
    said = plan("--json", "--", *SLURM, directory=folder)
    # It runs nothing and leaves nothing.
    assert not (folder / "results").exists()
    return json.loads(said.stdout), said.stderr


def test_the_papers_grid_on_a_cluster(planned: tuple[dict[str, Any], str]) -> None:
    made, said = planned
    retrain = made["rules"]["retrain"]
    assert retrain["jobs"] == 2160 and retrain["sources"] == {"FLOP on h100": 2160}
    hours = made["gpu_seconds"] / 3600
    # Training takes 800 of them; each perplexity starts a process of its own.
    assert hours == pytest.approx(852, rel=0.02)
    for words in ("NVIDIA H100", "published sizes", "26.6%"):
        assert words in said


def test_the_papers_grid_on_disk(planned: tuple[dict[str, Any], str]) -> None:
    disk = planned[0]["disk"]
    # Trained tensors of three endpoints of thirty runs.
    trained = 4 * 2 * 5 * (1.705e9 + 1.789e9 + 0.823e9)
    assert disk["end"] == pytest.approx(3 * trained, rel=0.01)
    assert disk["kept"] == pytest.approx(72 * trained, rel=0.01)
    # Weights and two moments.
    assert disk["checkpoint"] == pytest.approx(12 * 1.79e9, rel=0.01)


def test_another_workflow_is_no_case_for_it(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text("rule all:\n    shell: 'true'\n", encoding="utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "mamushi", "plan"],
        env=environment(PYTHONPATH=str(ROOT / "workflow")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "does not include Mamushi's" in said.stderr


# --- what jobs ask for ----------------------------------------------------------------------------


def asked(directory: Path, *words: str) -> dict[tuple[str, str], dict[str, int]]:
    """What one job of each rule and model asks for: its resources in the paper's dry run."""
    said = run("-n", *words, directory=directory).stdout
    found: dict[tuple[str, str], dict[str, int]] = {}
    # The jobs of a group stand indented below it.
    for block in re.split(r"\n *(?=\[|rule |localrule )", said):
        rule = re.match(r"(?:local)?rule (\w+):", block)
        model = re.search(r"wildcards:.*\bmodel=([^,\s]+)", block)
        resources = re.search(r"resources: (.*)", block)
        if rule and model and resources:
            pairs = (pair.split("=") for pair in resources[1].split(", ") if "=" in pair)
            numbers = {name: int(value) for name, value in pairs if value.isdigit()}
            found.setdefault((rule[1], model[1]), numbers)
    return found


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, int]]:
    # One dataset and seed, so that thousands of jobs need not be printed.
    config = "grid={datasets: [jigsaw], seeds: [0], budgets: [0.1], selectors: [mamushi]}"
    return asked(tmp_path_factory.mktemp("asked"), "--config", config)


def test_memory_and_time_grow_with_the_model(
    resources: dict[tuple[str, str], dict[str, int]],
) -> None:
    llama, gemma = (resources["retrain", model] for model in ("llama-3.1-8b", "gemma-2-2b"))
    assert llama["mem_mb"] == pytest.approx(64_000, rel=0.01)
    assert gemma["mem_mb"] == pytest.approx(32_000, rel=0.02)
    assert llama["runtime"] > 1.5 * gemma["runtime"]


def test_what_jobs_ask_for_is_more_than_what_they_need(
    resources: dict[tuple[str, str], dict[str, int]], tmp_path: Path
) -> None:
    config = complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    bill = Bill(config, gpu_rate("h100"), root=tmp_path)
    minutes, planned_minutes = [], []
    for (rule, model), amounts in resources.items():
        if rule not in (*TRAINING, *UNLEARNING, *READING):
            continue
        cell = {"dataset": "jigsaw", "model": model, "seed": "0", "beta": "0.10"}
        job = Job(rule, {**cell, "unlearner": "neggrad_plus"}, gpus=1)
        seconds = bill.estimate(job).seconds
        assert seconds is not None and amounts["runtime"] * 60 > 1.8 * seconds, (rule, model)
        # Weights, what is trained in fp32, and the checkpoint while it is written.
        state = bill.written(job)[2]
        needed = 2 * bill.size(model).parameters + state * 4 / 3
        assert amounts["mem_mb"] * 1e6 > needed + 8e9, (rule, model)
        if rule == "unlearn":
            # Reading a sample of the texts once is nothing beside training on them.
            job = Job(rule, {**cell, "unlearner": "logit_bias"}, gpus=1)
            edited = bill.estimate(job).seconds
            assert edited is not None and edited < seconds / 2
        minutes.append(amounts["runtime"])
        planned_minutes.append(seconds / 60)
    # Three endpoints, a retrained model, its perplexity and the embeddings of three models.
    assert len(minutes) == 6 * 3
    # Of each, 15 minutes are for a slow start, more than a short one takes in all. Who asks for far
    # more waits longer in the queue.
    pairs = zip(minutes, planned_minutes, strict=True)
    assert all(most <= 16 + 2.5 * planned for most, planned in pairs)


def test_memory_and_time_grow_with_the_texts(tmp_path: Path) -> None:
    found = []
    for millions in (1, 10):
        size = {"forget": millions * 100_000, "retain": millions * 900_000}
        sizes = dict.fromkeys(["contamination", "inference", "evaluation"], size)
        datasets = json.dumps({"made": {"kind": "synthetic", "sizes": sizes}})
        axes = "datasets: [made], seeds: [0], budgets: [0.1], selectors: [random]"
        words = ("--config", f"grid={{{axes}}}", f"datasets={datasets}", "studies=null")
        found.append(asked(tmp_path, "removals", *words))
    few, many = found
    # What is ranked follows the texts as soon as they are counted: test_resources.py.
    before, after = few["tokens", "gemma-2-2b"], many["tokens", "gemma-2-2b"]
    # Of all three sections: three million texts, and thirty.
    assert after["mem_mb"] - before["mem_mb"] == pytest.approx(27 * 2000, abs=1)
    assert after["runtime"] > before["runtime"]


def test_a_retried_job_asks_for_more(tmp_path: Path) -> None:
    config = "grid={datasets: [jigsaw], seeds: [0], budgets: [0.1], selectors: [random]}"
    once = asked(tmp_path, "--config", config)
    twice = asked(tmp_path, "--attempt", "2", "--config", config)
    for key in (("retrain", "gemma-2-2b"), ("embed", "llama-3.1-8b"), ("score", "qwen-2.5-7b")):
        for name in ("mem_mb", "runtime"):
            assert twice[key][name] == 2 * once[key][name]
