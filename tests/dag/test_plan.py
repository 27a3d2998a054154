"""The plan of the paper's grid, on a machine without data, weights or a GPU; and what its jobs ask
of a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi_cluster.forecast import Job, gpu_seconds, model_size
from tests.support.workflow import ROOT, mamushi, run


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan of config.yaml on SLURM."""
    folder = tmp_path_factory.mktemp("paper")
    words = ("--profile", "slurm", "--configfile", str(ROOT / "config.yaml"))
    made = json.loads(mamushi(folder, "plan", "--json", *words).stdout)
    # It runs nothing and leaves nothing.
    assert not (folder / "results").exists()
    return dict(made)


def test_the_papers_grid_on_a_cluster(planned: dict[str, Any]) -> None:
    retrain = planned["rules"]["retrain"]
    assert retrain["jobs"] == 2160 and retrain["source"] == "FLOP"
    # Training takes 800 of them.
    assert planned["gpu_hours"] == pytest.approx(831, rel=0.02)
    assert all("published sizes" in model for model in planned["models"])


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


def test_what_jobs_ask_for_is_more_than_what_they_need(
    resources: dict[tuple[str, str], dict[str, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    monkeypatch.chdir(tmp_path)
    minutes, planned_minutes = [], []
    for (rule, model), amounts in resources.items():
        if not amounts.get("gpu"):
            continue
        cell = {"dataset": "jigsaw", "model": model, "seed": "0", "beta": "0.10"}
        seconds = gpu_seconds(config, Job(rule, cell, gpus=1))
        assert seconds is not None and amounts["runtime"] * 60 > 1.8 * seconds, (rule, model)
        # Weights, what is trained in fp32, and the checkpoint while it is written.
        size = model_size(config, model)
        needed = 2 * size.parameters + 16 * size.trained(config["models"][model]["training"])
        assert amounts["mem_mb"] * 1e6 > needed + 8e9, (rule, model)
        minutes.append(amounts["runtime"])
        planned_minutes.append(seconds / 60)
    # An endpoint, a retrained model, its perplexity and the embeddings of three models.
    assert len(minutes) == 4 * 3
    # Of each, 15 minutes are for a slow start, more than a short one takes in all. Who asks for far
    # more waits longer in the queue.
    pairs = zip(minutes, planned_minutes, strict=True)
    assert all(most <= 16 + 2.5 * planned for most, planned in pairs)


def test_a_retried_job_asks_for_more(tmp_path: Path) -> None:
    config = "grid={datasets: [jigsaw], seeds: [0], budgets: [0.1], selectors: [random]}"
    once = asked(tmp_path, "--config", config)
    twice = asked(tmp_path, "--attempt", "2", "--config", config)
    for key in (("retrain", "gemma-2-2b"), ("embed", "llama-3.1-8b"), ("score", "qwen-2.5-7b")):
        for name in ("mem_mb", "runtime"):
            assert twice[key][name] == 2 * once[key][name]
