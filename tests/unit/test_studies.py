"""Benchmarks and studies run, at a size that measures nothing, and what they rest on is right."""

import os
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_check
from benchmarks.texts import FULL
from tests.support.workflow import ROOT, output_of


def values_of(folder: Path, module: str, *options: str) -> dict[str, str]:
    """Run a program and return the values of the file that it writes."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    words = [*module.split(), *options, "--results", folder]
    said = output_of(sys.executable, "-m", *words, cwd=ROOT, env=environment)
    (path,) = folder.glob("*-20*.txt")
    lines = path.read_text().splitlines()
    assert said.splitlines()[: len(lines)] == lines
    origin = {line.split()[1] for line in lines if line.startswith("#")}
    assert {"command", "date", "hardware", "torch"} <= origin
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.slow
def test_scale(tmp_path: Path) -> None:
    values = values_of(tmp_path, "benchmarks scale", "--texts", "400", "--selectors", "lr_cos")
    for name in ("examples", "import-embeddings", "score", "remove"):
        assert 0 < float(values[f"rss_gib_{name}_n400"]) <= float(values["rss_gib_all_n400"])


def test_coverage(tmp_path: Path) -> None:
    """With one seed, and where a column gives the label away, there is no interval; worlds that are
    drawn again are as before, and an earlier report has the others."""
    values = values_of(tmp_path, "studies.coverage.run", "--draws", "2")
    for name in ("seeds_1_recovered", "curves_1_half_gap", "leaking_auc"):
        assert (values[f"{name}_given"], values[f"{name}_holds"]) == ("0", "none")
    assert float(values["seeds_5_retain_change_given"]) == 1
    (report,) = tmp_path.glob("*.txt")
    options = ("--draws", "2", "--worlds", "seeds_5", "curves_2", "--earlier", str(report))
    assert values_of(tmp_path, "studies.coverage.run", *options) == values


def test_theory(tmp_path: Path) -> None:
    """The transfer bound holds in every random world, and is loose."""
    values = values_of(tmp_path, "studies.theory.run", "--worlds", "60")
    for objective in ("removal", "preservation"):
        for bound in ("best", "mass"):
            assert values[f"{bound}_{objective}_held"] == "60 of 60"
        held, _, worlds = values[f"bce_{objective}_held"].split()
        assert held == worlds != "60"
        tight, best = (float(values[f"{b}_{objective}_over_regret"]) for b in ("mass", "best"))
        assert 1 < tight < best


@pytest.mark.slow
def test_gpu_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU: packed and padded texts are equal, and the report has speeds."""
    small = {
        **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "head_dim": 16},
        **{"num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 300},
    }
    models = {
        name: type(config)(**{**config.to_dict(), "layer_types": None, **small})
        for name, config in FULL.items()
    }
    monkeypatch.setattr(gpu_check, "VARIANTS", ("padded", "ours"))
    options = {"results": tmp_path, "steps": 3, "warm_up": 1}
    gpu_check.check(models, torch.device("cpu"), "NVIDIA H100", **options)
    (path,) = tmp_path.glob("gpu-check-*-nvidia-h100.txt")
    for name in models:
        assert f"\n{name}_tflop_per_second_ours " in path.read_text()
