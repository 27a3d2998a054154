"""What jobs take: by finished ones, by operations and sizes, or not at all; and as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

from mamushi.config.complete import complete
from mamushi.io import paths
from mamushi.lm import parameters, tiny
from mamushi_runs import sizes
from mamushi_runs.commands import _rates as rates
from mamushi_runs.commands import plan
from mamushi_runs.commands._bill import Bill, Job, forward_flop, training_flop
from tests.support.workflow import ROOT

LOG = "results/logs/{rule}/{{dataset}}/{{model}}/seed{{seed}}/{{selector}}/beta{{beta}}.log"


def configured(path: str) -> dict[str, Any]:
    return complete(yaml.safe_load((ROOT / path).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def paper() -> dict[str, Any]:
    return configured("config.yaml")


def job(rule: str, gpus: int = 1, **at: str) -> Job:
    cell = {"dataset": "jigsaw", "model": "llama-3.1-8b", "seed": "0", **at}
    return Job(rule, cell, LOG.format(rule=rule) if "beta" in at else None, gpus, 64000.0)


def test_the_papers_fine_tune_takes_what_the_paper_says_less_the_padding(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    estimate = Bill(paper, rates.gpu_rate(), root=tmp_path).estimate(job("beta0"))
    # 105 minutes with 128 tokens to each text; Jigsaw's have 61.
    assert estimate.seconds is not None and estimate.source == "FLOP on h100"
    assert (estimate.seconds - 35) / 60 * 128 / 61 == pytest.approx(105, abs=2)


def test_what_jobs_have_taken_here_goes_before_what_is_calculated(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    bill = Bill(paper, rates.gpu_rate(), gpus=False, root=tmp_path)
    wanted = job("retrain", selector="random", beta="0.10")
    assert bill.estimate(wanted).seconds is None
    for place, (selector, seed, seconds) in enumerate([("a", 0, 90.0), ("a", 1, 110.0)]):
        cell = {**wanted.wildcards, "selector": selector, "seed": seed}
        log = tmp_path / wanted.log.format(**cell) if wanted.log else tmp_path
        log.parent.mkdir(parents=True)
        log.write_text(
            f"step {place}\nmamushi finetune: took {seconds} s, {2 * seconds} s of CPU\n"
        )
    estimate = Bill(paper, rates.gpu_rate(), gpus=False, root=tmp_path).estimate(wanted)
    assert estimate == (100.0, "2 finished here", 200.0)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *[("h100", "h100"), ("NVIDIA H100 80GB HBM3", "h100"), ("nvidia_h100_pcie", "h100-pcie")],
        *[("L40S", "l40s"), ("RTX 4090", "rtx4090"), ("v100", None)],
        *[("h1000", None), ("L40", None), ("gpu:h100:4", "h100"), ("A100-SXM4-40GB", "a100")],
    ],
)
def test_gpus_by_the_names_that_clusters_give_them(name: str, key: str | None) -> None:
    assert rates.gpu_key(name) == key


def test_tokens_follow_the_files_once_texts_are_counted(tmp_path: Path) -> None:
    """Short texts were taken for 200 tokens, and a run for four times its time."""
    table = tmp_path / "short.csv"
    table.write_text("x" * 45_000, encoding="utf-8")
    config = configured("config.yaml")
    config["datasets"]["mine"] = {"kind": "table", "path": str(table), "limit": {}}
    bill = Bill(config, rates.gpu_rate(), root=tmp_path)
    assert bill.tokens("mine", 64) == 64
    card = tmp_path / paths.DATA_CARD.format(dataset="mine")
    card.parent.mkdir(parents=True)
    counts = {"inference": {"forget": 300, "retain": 700}}
    card.write_text(json.dumps({"counts": {"sections": counts}}), encoding="utf-8")
    assert bill.tokens("mine", 64) == pytest.approx(10)


def test_the_plan_says_for_every_rule_what_it_is_from(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    jobs = [job("beta0"), job("remove", gpus=0, beta="0.10", selector="random")]
    planned = plan.reckon(jobs, Bill(paper, rates.gpu_rate(), root=tmp_path))
    said = plan.text(planned)
    lines = {line.split()[0]: line for line in said.splitlines() if line}
    assert lines["beta0"].endswith("FLOP on h100") and lines["remove"].endswith(" -")
    for part in ("for 1 jobs", "with keep_checkpoints", "8.03 billion", "without padding"):
        assert part in said
    json.dumps(planned, allow_nan=False)
    on_processor = Bill(paper, rates.gpu_rate(), gpus=False, root=tmp_path)
    assert plan.reckon(jobs, on_processor)["unknown"] == 2


PAPER = {
    **{"method": "partial", "trained_blocks": 3},
    **{"train_input_embedding": True, "train_output_head": True},
}
TINY = {
    **{"hidden_size": 32, "layers": 4, "heads": 4, "key_value_heads": 2},
    **{"intermediate_size": 48, "vocabulary_size": 300, "max_positions": 16},
}


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize(
    "change",
    [
        *({}, {"trained_blocks": 1}, {"train_input_embedding": False}, {"method": "full"}),
        {"method": "lora", "lora": {"rank": 4, "alpha": 8, "dropout": 0, "target_modules": None}},
    ],
)
def test_operations_are_those_that_torch_counts(family: str, change: dict[str, Any]) -> None:
    model = tiny.build({"family": family, **TINY}, ["one two three four five"] * 4, seed=0)[0]
    training = {**PAPER, **change}
    size = sizes.of({"models": {"m": {"source": None, "family": family, **TINY}}}, "m")
    ids = torch.arange(7, 9).repeat(8, 1)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids)
    # Torch counts attention's products too, a few per cent here, and neither norms nor biases.
    assert forward_flop(size) * ids.numel() == pytest.approx(counter.get_total_flops(), rel=0.06)
    parameters.freeze(model, training)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids).logits.sum().backward()
    counted = counter.get_total_flops()
    assert training_flop(size, training) * ids.numel() == pytest.approx(counted, rel=0.06)
