"""The benchmarks of selection: they run, at a size that measures nothing, and what they are run on
has the density ratio that it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import write_table
from tests.support.audit_files import AXES, write_all
from tests.support.grid_files import write_perplexity

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import pools

    return pools


def test_the_ratio_of_the_synthetic_embeddings_is_exact(pools: Any) -> None:
    """E_p1[p2/p1] = E_p2[p1/p2] = 1, and weighing p2 by the ratio gives the means of p1."""
    pool = pools.synthetic(200_000, 20, 0.5, seed=3)
    forget, truth = pool.forget, pool.truth
    # A ratio has heavy tails: where it is moderate, the tails have no say.
    for domain, sign in ((forget, -1), (~forget, 1)):
        inside = np.abs(truth) < 3
        there, elsewhere = domain & inside, ~domain & inside
        weighed = np.exp(sign * truth[there]).sum() / domain.sum()
        assert weighed == pytest.approx(elsewhere.sum() / (~domain).sum(), rel=0.02)
    again = pools.synthetic(1000, 20, 0.5, seed=3)
    assert np.array_equal(again.embeddings, pools.synthetic(1000, 20, 0.5, seed=3).embeddings)


def test_the_worlds_without_labels_have_what_the_page_is_made_of(tmp_path: Path) -> None:
    words = ("--draws", "2", "--compared", "1")
    values = ran(tmp_path, "positive", *words, file="positive-worlds")
    for world in ("alike_0.95_5%", "mixtures_100_5%"):
        assert float(values[f"{world}_bound_covers"]) == 1
        assert 0 < float(values[f"{world}_wanted_width"]) < 1
    assert 0.5 < float(values["mixtures_100_5%_ours_auc"]) <= 1


def ran(tmp_path: Path, name: str, *options: str, file: str | None = None) -> dict[str, str]:
    """The values of the file that a benchmark writes, after comparing it with what it printed."""
    command = [sys.executable, f"benchmarks/{name}.py", *options, "--results", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (written,) = tmp_path.glob(f"{file or name}-20*.txt")
    lines = written.read_text().splitlines()
    assert done.stdout.splitlines()[: len(lines)] == lines
    about = [line for line in lines if line.startswith("# ")]
    assert {"command", "date", "hardware", "torch"} <= {line.split()[1] for line in about}
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


def test_selection(tmp_path: Path) -> None:
    found = ran(
        tmp_path, "selection", "--examples", "200", "--width", "16", "--points", "80",
        "--picks", "40", "--brief", "--selectors", "l2_norm",
    )  # fmt: skip
    assert found["kcenter_same_set"] == "40/40"
    assert found["kcenter_matrix_vector_same_order"] == "True"
    assert float(found["mlp_fp32_ratio"]) > 0
    assert 0 < float(found["stage_l2_norm_peak_gib"]) < 4
    assert float(found["mlp_sklearn_seed1_auc"]) > 0.5
    assert float(found["mlp_spearman_sklearn_same_draws"]) > 0.9


def test_audit(tmp_path: Path) -> None:
    found = ran(tmp_path, "audit", "--draws", "3")
    assert float(found["least_melded_recall"]) > 0.5
    held, half = map(float, found["share0.05_precision0.9_good_300_melded_recall"].split())
    assert 0 < half < 0.5 < held


def test_scale(tmp_path: Path) -> None:
    found = ran(
        tmp_path, "scale", "--sizes", "200", "400", "--widths", "8", "16", "--repeats", "1",
        "--selectors", "l2_norm", "lr_cos",
    )  # fmt: skip
    assert {f"exponent_{of}_{name}" for of in "nd" for name in ("l2_norm", "lr_cos")} <= set(found)
    # A ranking serves every budget: more of them read no embedding again.
    assert {found[f"budgets_{number}_passes"] for number in (1, 9, 99)} == {"2"}


@pytest.mark.parametrize(
    ("more", "file", "of_texts"),
    [
        ((), "scale-texts", ["import-embeddings"]),
        (("--embed", "2"), "scale-embedded", ["tokens", "finetune", "embed"]),
    ],
)
def test_scale_of_texts(
    tmp_path: Path, more: tuple[str, ...], file: str, of_texts: list[str]
) -> None:
    words = ("--texts", "400", "--selectors", "lr_cos", *more)
    found = ran(tmp_path, "scale", *words, file=file)
    stages = ("examples", *of_texts, "score", "remove", "manifests", "ranking")
    for stage in stages:
        assert 0 < float(found[f"rss_gib_{stage}_n400"]) <= float(found["all_rss_gib_n400"])
    total = sum(float(found[f"cpu_seconds_{stage}_n400"]) for stage in stages)
    assert 0 < total < float(found["all_cpu_seconds_n400"])
    # Snakemake beside what the greatest job has.
    assert float(found["together_gib_n400"]) > float(found["rss_gib_score_n400"]) > 0
    assert float(found["page_mib_n400"]) > 0


def test_gpu_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a size that measures nothing, on the CPU: packed and padded texts are equal, and the plan
    reads what was measured."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gpu_check
    import torch
    from texts import FULL

    from mamushi_runs.forecast import rates

    small = {
        **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "head_dim": 16},
        **{"num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 300},
    }
    families = {
        family: type(config)(**{**config.to_dict(), "layer_types": None, **small})
        for family, config in FULL.items()
    }
    monkeypatch.setattr(gpu_check, "VARIANTS", ("padded", "ours"))
    monkeypatch.setattr(rates, "MEASURED", tmp_path / "gpu" / "rates.json")
    assert "assumed" in rates.rate("h100").source
    device = torch.device("cpu")
    places = {"results": tmp_path, "shares": rates.MEASURED, "steps": 3, "warm_up": 1}
    gpu_check.check(families, device, "NVIDIA H100", **places)
    (written,) = tmp_path.glob("gpu-check-*-nvidia-h100.txt")
    lines = (line for line in written.read_text().splitlines() if not line.startswith("#"))
    found = dict(line.split(" ", 1) for line in lines)
    for family in families:
        for precision, bounds in gpu_check.LOOSE.items():
            for what, most in bounds.items():
                assert 0 <= float(found[f"{family}_parity_{precision}_{what}"]) <= most
    shares = sorted(float(found[f"{family}_share_of_peak_ours"]) for family in families)
    rate = rates.rate("h100")
    assert rate.flops == pytest.approx(shares[1] * 989e12, rel=1e-3)
    assert "measured by make gpu-check on 20" in rate.source
    # Of another GPU nothing is known.
    assert "assumed" in rates.rate("a100").source

    monkeypatch.setattr(gpu_check, "parity", lambda *_: {"loss": 2.0, "gradient": 2.0})
    with pytest.raises(UserError, match="packed texts differs from that of padded ones"):
        gpu_check.check(families, device, "NVIDIA H100", **places)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py"])
    capsys.readouterr()
    assert gpu_check.main() == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_null(tmp_path: Path) -> None:
    """Gold models that have seen nothing, and models that remember."""
    root, axes = tmp_path / "results", {**AXES, "seeds": [0, 1, 2, 3]}
    write_all(root, axes)
    found = ran(tmp_path, "null", str(root), "alpha", "small", "--seeds", "0", "1", "2", "3")
    assert float(found["beta0_likelihood_ratio_auc"]) > 0.9
    assert 0.3 < float(found["gold_likelihood_ratio_auc"]) < 0.7


def test_theory(tmp_path: Path) -> None:
    """The transfer bound holds in every random world, and is loose."""
    found = ran(tmp_path, "theory", "--worlds", "60")
    for of in ("removal", "preservation"):
        for bound in ("drawn", "best", "mass", "sharper"):
            assert found[f"{bound}_{of}_held"] == "60 of 60"
        held, _, worlds = found[f"bce_sharper_{of}_held"].split()
        assert held == worlds != "60"
        least, middle = (float(found[f"{b}_{of}_over_regret_median"]) for b in ("sharper", "best"))
        assert 1 < least < middle <= float(found[f"drawn_{of}_over_regret_median"])


@pytest.fixture
def graded(tmp_path: Path) -> tuple[str, ...]:
    """A table of texts with two grades of the forget domain, of which the rarer is the plainer."""
    rng = np.random.default_rng(0)
    lines = ["text,grade"]
    for i in range(400):
        grade = 0 if i < 200 else 1 if i < 360 else 2
        words = [f"w{j}" for j in rng.integers(0, 30, 8)]
        words += [f"bad{j}" for j in rng.integers(0, 4, 6 if grade == 2 else grade)]
        lines.append(f"{' '.join(words)},{grade}")
    path = tmp_path / "graded.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    settings = '{"forget": {"where": "grade > 0"}, "labels": ["grade"]}'
    return "table", str(path), "--settings", settings, "--width", "8"


def test_parts(tmp_path: Path, graded: tuple[str, ...]) -> None:
    found = ran(
        tmp_path, "parts", *graded, "--grade", "grade", "--thin", "0.5",
        "--estimators", "linear", file="parts-table",
    )  # fmt: skip
    assert (found["forget_texts"], found["retain_texts"]) == ("200", "200")
    assert (found["linear_1_texts"], found["linear_2_texts"]) == ("160", "40")
    assert float(found["linear_spearman_grade"].split()[0]) > 0.4
    assert float(found["linear_2_auc_in_domain"].split()[0]) > 0.8
    assert float(found["linear_2_of_list_0.1"]) > 0.5 > float(found["linear_1_listed_0.1"])
    assert found["linear_2_thin_0.5_draws"] == "2"


def test_sample_size(tmp_path: Path, graded: tuple[str, ...]) -> None:
    found = ran(
        tmp_path, "sample_size", *graded, "--sizes", "40", "80", "120", "180", "--common", "40",
        "--repeats", "1", file="sample_size-table",
    )  # fmt: skip
    assert 0.5 < float(found["mamushi_lr_40_auc"]) <= 1
    assert 0 <= float(found["one_network_80_agreement"]) <= 1
    # Of 200 texts in a domain, 40 are common: there is one draw of 120, and none of 180.
    assert "one_network_120_agreement" not in found and found["one_network_120_repeats"] == "1"
    assert found["mamushi_lr_180_repeats"] == "0"
    assert float(found["mamushi_lr_120_auc_width"]) < float(found["mamushi_lr_40_auc_width"])


def test_stops(tmp_path: Path) -> None:
    """Forget texts are half a word of their own: it alone tells, and is half of the tokens."""
    root, cell = tmp_path / "results", {"dataset": "d", "model": "m", "seed": 1}
    forget, retain = [9, *[1, 2] * 4], [9, *[3, 2] * 4]
    n = 40
    names = [f"t{i}" for i in range(n)]
    columns = {
        "id": names,
        "text": names,
        "domain": [("forget", "retain")[i % 2] for i in range(n)],
        "section": [("inference", "contamination")[i // 2 % 2] for i in range(n)],
    }
    missing = [name for name in schemas.EXAMPLES.schema.names if name not in columns]
    examples = columns | {name: [None] * n for name in missing}
    write_table(paths.under(root, paths.EXAMPLES, **cell), schemas.EXAMPLES, examples)
    tokens = {"id": names, "tokens": [np.int32((forget, retain)[i % 2]) for i in range(n)]}
    cache = paths.under(root, paths.TOKENS, **cell)
    write_table(cache, schemas.TOKENS, tokens, metadata={"max_length": 16})
    measured = {"beta0": 3.0, "gold": 4.0}
    for beta, masked, nll in (("0.25", 20, 3.6), ("0.50", 40, 4.2)):
        measured[f"retrained/token_unigram/beta{beta}"] = nll
        of = {"selector": "token_unigram", "beta": beta}
        about = {"masked": masked, "tokens": 80, "max_length": 16}
        about |= {"settings": {"folds": 2, "prior": 1.0}}
        write_json(paths.under(root, paths.SPANS_MANIFEST, **cell, **of), about)
    for arm, nll in measured.items():
        write_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=arm), np.exp(nll), 1.0)
    found = ran(tmp_path, "stops", str(root), "--model=m", "--datasets=d", "--seeds=1")
    assert float(found["d_measured"].split()[0]) == pytest.approx(0.25 + 0.25 * 2 / 3, abs=1e-3)
    assert float(found["d_above_zero"]) == float(found["d_surely_above_zero"]) == 0.5
    assert 0.4 < float(found["d_excess"]) < 0.5
    assert 0.4 < float(found["d_unigrams"]) <= 0.5
