"""Benchmarks and studies run, at a size that measures nothing, and what they rest on is right."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import curve, gpu_check
from benchmarks.texts import FULL
from mamushi.errors import UserError
from mamushi.lm.tiny import build
from mamushi_runs.commands import _rates as rates
from studies.lib.pools import synthetic
from studies.predicted import run as predicted
from tests.support.models import SIZES

ROOT = Path(__file__).parents[2]


def values_of(folder: Path, module: str, *options: str) -> dict[str, str]:
    """Run a program and return the values of the file that it writes."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", *module.split(), *options, "--results", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*-20*.txt")
    lines = path.read_text().splitlines()
    assert done.stdout.splitlines()[: len(lines)] == lines
    origin = {line.split()[1] for line in lines if line.startswith("#")}
    assert {"command", "date", "hardware", "torch"} <= origin
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("path", sorted(ROOT.glob("studies/*/*.py")), ids=str)
def test_every_study_finds_what_it_imports(path: Path) -> None:
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def test_the_curve_in_the_docs_is_that_of_the_results(tmp_path: Path) -> None:
    rows = curve.measurements()
    assert {*rows.line} == {*curve.STAGES, curve.SCREEN}
    assert rows.groupby(["line", "quantity"], observed=True).n.nunique().min() >= 3
    curve.draw(rows, tmp_path / "scale.svg")
    assert (tmp_path / "scale.svg").read_bytes() == curve.PICTURE.read_bytes()
    page = curve.PAGE.read_text(encoding="utf-8")
    assert curve.with_table(page, rows) == page
    assert curve.with_table(page, rows.assign(value=1.0)) != page


@pytest.mark.slow
def test_selection(tmp_path: Path) -> None:
    values = values_of(
        tmp_path, "benchmarks selection", "--examples", "200", "--width", "16", "--points", "80",
        "--picks", "40",
    )  # fmt: skip
    assert values["kcenter_same_set"] == "40/40"
    assert float(values["mlp_fp32_ratio"]) > 0
    assert float(values["mlp_spearman_sklearn_same_draws"]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "stage"), [((), "import-embeddings"), (("--embed", "2"), "embed")]
)
def test_scale(tmp_path: Path, options: tuple[str, ...], stage: str) -> None:
    values = values_of(
        tmp_path, "benchmarks scale", "--texts", "400", "--selectors", "lr_cos", *options
    )
    for name in ("examples", stage, "score", "remove"):
        assert 0 < float(values[f"rss_gib_{name}_n400"]) <= float(values["all_rss_gib_n400"])
    # Snakemake beside what the greatest job has.
    assert float(values["together_gib_n400"]) > float(values["rss_gib_score_n400"])


@pytest.mark.slow
def test_embedding_peers(tmp_path: Path) -> None:
    """All programs embed alike, also with a BOS and without a token to pad with."""
    words = [f" {a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]
    settings = {**SIZES, "family": "llama", "max_positions": 256, "vocabulary_size": 400}
    for part in build(settings, words, 0):
        part.save_pretrained(tmp_path / "model")
    values = values_of(
        tmp_path, "benchmarks embedding_peers", "--model", str(tmp_path / "model"), "--texts", "60",
        "--batches", "1", "--batch-size", "20", "--turns", "1",
    )  # fmt: skip
    peers = {"transformers", "transformers_sorted"}
    if find_spec("sentence_transformers"):
        peers.add("sentence_transformers")
    for label in ("tweets_fp32", "posts_bf16"):
        ratios = {name for name in values if name.startswith(f"{label}_ratio_")}
        assert ratios == {f"{label}_ratio_{peer}" for peer in peers}
        assert float(values[f"{label}_tokens_per_second_mamushi"]) > 0
        for peer in peers:
            difference, scale = (
                float(values[f"{label}_{name}_{peer}"]) for name in ("difference", "scale")
            )
            assert difference < scale / 50
    shares = [float(values[f"posts_padding_transformers{order}"]) for order in ("_sorted", "")]
    assert 0 < shares[0] < shares[1] < 1


@pytest.mark.slow
def test_screen(tmp_path: Path) -> None:
    """Each program tells texts of the domain from the others."""
    command = [sys.executable, "-m", "benchmarks", "screen", "--texts", "26000"]
    command += ["--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = {}
    for path in tmp_path.glob("screen-*.txt"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        values |= dict(line.split(" ", 1) for line in lines)
    for program in ("mamushi", "sklearn_lr", "sklearn_sgd"):
        assert float(values[f"auc_{program}"]) > 0.8
        assert float(values[f"rate_{program}"]) > 0
    for stage in ("screen-scores", "examples"):
        assert 0 < float(values[f"rss_gib_{stage}_n26000"]) <= float(values["all_rss_gib_n26000"])


@pytest.mark.slow
def test_audit(tmp_path: Path) -> None:
    values = values_of(tmp_path, "studies.audit.run", "--draws", "3")
    held, half = map(float, values["share0.05_precision0.9_good_300_melded_recall"].split())
    assert 0 < half < 0.5 < held


@pytest.mark.slow
def test_hidden_groups(tmp_path: Path) -> None:
    """Groups of five are seen; of the right labels the AUC is higher than of the wrong ones."""
    asked = ("--draws", "3", "--worlds", "fives", "wrong_0.10")
    values = values_of(tmp_path, "studies.hidden_groups.run", *asked)
    assert float(values["fives_given"]) < 0.5 < float(values["wrong_0.10_given"])
    assert float(values["wrong_0.10_truth"]) > float(values["wrong_0.10_auc"])


@pytest.mark.slow
def test_theory(tmp_path: Path) -> None:
    """The transfer bound holds in every random world, and is loose."""
    values = values_of(tmp_path, "studies.theory.run", "--worlds", "60")
    for objective in ("removal", "preservation"):
        for bound in ("drawn", "best", "mass"):
            assert values[f"{bound}_{objective}_held"] == "60 of 60"
        held, _, worlds = values[f"bce_{objective}_held"].split()
        assert held == worlds != "60"
        tight, best = (
            float(values[f"{b}_{objective}_over_regret_median"]) for b in ("mass", "best")
        )
        assert 1 < tight < best <= float(values[f"drawn_{objective}_over_regret_median"])


def test_the_ratio_of_the_synthetic_embeddings_is_exact() -> None:
    """E_p1[p2/p1] = E_p2[p1/p2] = 1: weighing a domain by the ratio gives the other one."""
    pool = synthetic(200_000, 20, 0.5, seed=3)
    forget, truth = pool.forget, pool.truth
    assert truth is not None
    # A ratio has heavy tails: where it is moderate, the tails have no say.
    inside = np.abs(truth) < 3
    for domain, sign in ((forget, -1), (~forget, 1)):
        weighed = np.exp(sign * truth[domain & inside]).sum() / domain.sum()
        assert weighed == pytest.approx((~domain & inside).sum() / (~domain).sum(), rel=0.02)


@pytest.mark.slow
def test_gpu_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU: packed and padded texts are equal, and the plan reads what was measured."""
    small = {
        **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "head_dim": 16},
        **{"num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 300},
    }
    models = {
        name: type(config)(**{**config.to_dict(), "layer_types": None, **small})
        for name, config in FULL.items()
    }
    monkeypatch.setattr(gpu_check, "VARIANTS", ("padded", "ours"))
    monkeypatch.setattr(rates, "MEASURED", tmp_path / "gpu" / "rates.json")
    places = {"results": tmp_path, "shares": rates.MEASURED, "steps": 3, "warm_up": 1}
    gpu_check.check(models, torch.device("cpu"), "NVIDIA H100", **places)
    (path,) = tmp_path.glob("gpu-check-*-nvidia-h100.txt")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    values = dict(line.split(" ", 1) for line in lines)
    shares = sorted(float(values[f"{name}_share_of_peak_ours"]) for name in models)
    assert rates.gpu_rate("h100").flops == pytest.approx(shares[1] * 989e12, rel=1e-3)
    assert "measured by make gpu-check on 20" in rates.gpu_rate("h100").source
    assert "assumed" in rates.gpu_rate("a100").source

    monkeypatch.setattr(gpu_check, "parity", lambda *_: {"loss": 2.0, "gradient": 2.0})
    with pytest.raises(UserError, match="packed texts differs from that of padded ones"):
        gpu_check.check(models, torch.device("cpu"), "NVIDIA H100", **places)


# Predictors of retraining -------------------------------------------------------------------------


class Values(dict[str, float]):
    """A report that keeps its values."""

    def value(self, name: str, number: float) -> None:
        self[name] = number


def lists() -> list[Any]:
    """Two selectors with two seeds that recover as the powers 0.5 and 1 of the budget."""
    return [
        predicted.List(seed, name, beta, np.arange(int(8 * beta)), beta**power, -0.1 * power * beta)
        for seed in (0, 1)
        for name, power in (("fast", 0.5), ("even", 1.0))
        for beta in (0.25, 0.5, 0.75)
    ]


def test_a_perfect_predictor_has_no_error_and_the_budget_tells_no_lists_apart() -> None:
    values = Values()
    for name, foreseen in (
        ("p", [[row.recovered, row.retain] for row in lists()]),
        ("b", [[row.beta] for row in lists()]),
    ):
        predicted.judged(values, name, lists(), np.array(foreseen))
        predicted.half_gaps(values, name, lists(), np.array(foreseen))
    assert values["p_error"] == values["p_bias"] == 0
    assert values["p_within_0.5"] == pytest.approx(1)
    assert values["p_half_gap_error"] == values["p_at_0.9_error"] == pytest.approx(0)
    assert not [name for name in values if name.startswith("b_within")]
    assert values["b_half_gap_largest"] == pytest.approx(0.25)
    assert values["b_half_gap_covered"] == 0.5


def test_predictions_of_a_file_are_those_of_its_arms(tmp_path: Path) -> None:
    path, values = tmp_path / "predictions.csv", Values()
    path.write_text(
        "dataset,seed,arm,recovered\nsmall,1,retrained/even/beta0.25,0.3\n"
        "other,0,retrained/even/beta0.25,0.9\n"
    )
    foreseen = predicted.read_predictions(path, "small", lists())
    assert np.isfinite(foreseen).sum() == 1
    predicted.judged(values, "g", lists(), foreseen)
    assert values["g_error"] == pytest.approx(0.05)
