"""What jobs ask for and the plan gives, on a machine without data, weights or a GPU: of the paper's
grid, and once texts are counted."""

import json
import re
from pathlib import Path

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi_cluster.forecast import Job, gpu_seconds, model_size
from tests.support import contract_grid
from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT, mamushi, run

# One dataset and seed, so that thousands of jobs need not be printed.
FEW = "grid={datasets: [jigsaw], seeds: [0], budgets: [0.1], selectors: [mamushi]}"


def test_the_papers_grid_on_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("{extends: paper, grid: {seeds: [0]}}", encoding="utf-8")
    words = ("--profile", "slurm", "--configfile", "one.yaml")
    planned = json.loads(mamushi(tmp_path, "plan", "--json", *words).stdout)
    # It runs nothing and leaves nothing.
    assert not (tmp_path / "results").exists()
    retrain = planned["rules"]["retrain"]
    assert 5 * retrain["jobs"] == 2160 and retrain["source"] == "FLOP"
    # With five seeds; training takes 800 of them.
    assert 5 * planned["gpu_hours"] == pytest.approx(831, rel=0.02)
    assert all("published sizes" in model for model in planned["models"])


def asked(directory: Path, *words: str | Path) -> dict[tuple[str, str], dict[str, str]]:
    """What one job of each rule and model asks for: its resources in a dry run."""
    said = run("-n", *words, directory=directory).stdout
    found: dict[tuple[str, str], dict[str, str]] = {}
    for block in re.split(r"\n(?=\[|rule |localrule )", said):
        rule = re.match(r"(?:local)?rule (\w+):", block)
        model = re.search(r"wildcards:.*\bmodel=([^,\s]+)", block)
        if rule and model and (resources := re.search(r"resources: (.*)", block)):
            pairs = (pair.split("=", 1) for pair in resources[1].split(", ") if "=" in pair)
            found.setdefault((rule[1], model[1]), dict(pairs))
    return found


def test_what_jobs_ask_for_is_more_than_what_they_need(tmp_path: Path) -> None:
    config = complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    on_gpu = 0
    for (rule, model), amounts in asked(tmp_path, "--config", FEW).items():
        if "gpu" not in amounts:
            continue
        cell = {"dataset": "jigsaw", "model": model, "seed": "0", "beta": "0.10"}
        seconds = gpu_seconds(config, Job(rule, cell, gpus=1))
        minutes = int(amounts["runtime"])
        assert seconds is not None and minutes * 60 > 1.8 * seconds, (rule, model)
        # Of these, 15 are for a slow start, more than a short one takes in all. Who asks for far
        # more waits longer in the queue.
        assert minutes <= 16 + 2.5 * seconds / 60, (rule, model)
        # Weights, what is trained in fp32, and the checkpoint while it is written.
        size = model_size(config, model)
        needed = 2 * size.parameters + 16 * size.n_trained(config["models"][model]["training"])
        assert int(amounts["mem_mb"]) * 1e6 > needed + 8e9, (rule, model)
        on_gpu += 1
    # An endpoint, its perplexity, a retrained model and the embeddings of three models.
    assert on_gpu == 4 * 3


def test_memory_and_time_follow_the_texts_once_they_are_counted(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    cell = {"dataset": "mine", "model": "tiny", "seed": "0"}
    perplexity = paths.PERPLEXITY.format(**cell, arm="beta0")
    targets = [paths.SCORES.format(**cell, selector="mamushi"), perplexity]

    def resources(texts: int) -> dict[str, dict[str, int]]:
        counts = {"forget": texts // 2, "retain": texts // 2}
        sections = {"inference": counts, "evaluation": counts}
        card = tmp_path / paths.DATA_CARD.format(dataset=cell["dataset"])
        write_json(card, {"counts": {"sections": sections}})
        found: dict[str, dict[str, int]] = snakemake.look(tmp_path, targets=targets)["resources"]
        return found

    few, many = resources(2000), resources(2_000_000)
    for rule in ("embed", "score"):
        for name in ("mem_mb", "runtime"):
            assert many[rule][name] > 1.4 * few[rule][name], (rule, name)
    assert many["evaluate"]["runtime"] > 1.4 * few["evaluate"]["runtime"]
