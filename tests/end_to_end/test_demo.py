"""The demo at its smallest size, from the first text to the report."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from sklearn.metrics import roc_auc_score
from torch.nn import functional
from transformers import AutoModelForCausalLM

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.stages._settings import EVIDENCE_TABLES
from tests.support.demo import CELL, SELECTORS, Ran, Rerun, science, whole
from tests.support.workflow import ROOT, command, environment, run


@pytest.mark.parametrize("target", ["all", "evidence", "unlearning"])
def test_a_second_run_does_nothing(demo: Path, target: str) -> None:
    assert "Nothing to be done" in run(target, "-n", directory=demo, config=science()).stdout


def test_curves_have_all_budgets_between_shared_ends(demo: Path) -> None:
    sad = read_table(demo / paths.TABLE.format(table="sad"), schemas.SAD).to_pandas()
    assert sorted(sad["selector"].unique()) == sorted(SELECTORS)
    for _, rows in sad.groupby("selector"):
        assert sorted(rows["beta"]) == [0.0, 0.3, 0.6, 1.0]
    assert sad.loc[sad["beta"] == 0.0, "sad"].nunique() == 1
    assert (sad.loc[sad["beta"] == 1.0, "sad"] == 0).all()
    assert (sad.loc[sad["beta"] == 0.3, "removed"] == 36).all()
    again = abs(sad["ppl_forget"] - sad["gold_ppl_forget"])
    again += abs(sad["ppl_retain"] - sad["gold_ppl_retain"])
    assert sad["sad"].to_numpy() == pytest.approx(again.to_numpy())
    summary = csv.read_csv(demo / paths.TABLE_CSV.format(table="sad_summary")).to_pandas()
    areas = summary.groupby("selector")["area_mean"].first()
    assert areas["oracle"] < areas["anti_mamushi"]


def test_matched_gold_is_gold_in_the_steps_of_beta0(demo: Path) -> None:
    cards = {
        role: read_json(demo / paths.CARD.format(**CELL, arm=role))
        for role in ("beta0", "gold", "gold_matched")
    }
    assert cards["gold_matched"]["texts"] == cards["gold"]["texts"] == 240
    assert cards["gold_matched"]["steps"] == cards["beta0"]["steps"] > cards["gold"]["steps"]
    (row,) = read_table(demo / paths.TABLE.format(table="steps"), schemas.STEPS).to_pylist()
    sad = read_table(demo / paths.TABLE.format(table="sad"), schemas.SAD).to_pandas()
    assert row["sad"] == sad.loc[sad["beta"] == 0.0, "sad"].iloc[0]
    assert 0 < row["steps_sad"] == pytest.approx(row["steps_share"] * row["sad"])


def test_what_a_training_took_is_said_in_its_log(demo: Path) -> None:
    cards = list(demo.glob("results/runs/**/arms/retrained/**/card.json"))
    logs = [path.read_text() for path in demo.glob("results/logs/retrain*/**/*.log")]
    # Two budgets of the grid, and for two selectors those of unlearning.
    assert len(cards) == len(logs) == len(SELECTORS) * 2 + 2 * 2
    assert all(": took " in log.splitlines()[-1] for log in logs)


def test_removals_are_nested_and_their_manifests_name_their_sources(demo: Path) -> None:
    for selector in SELECTORS:
        scores = demo / paths.SCORES.format(**CELL, selector=selector)
        lists = []
        for budget, size in (("0.30", 36), ("0.60", 72)):
            where = {**CELL, "selector": selector, "beta": budget}
            ids = read_table(demo / paths.REMOVAL.format(**where), schemas.REMOVALS)[
                "id"
            ].to_pylist()
            assert len(ids) == size
            lists.append(ids)
            manifest = json.loads((demo / paths.MANIFEST.format(**where)).read_text())
            assert manifest["removed"] == size
            assert manifest["provenance"]["inputs"]["scores"] == sha256(scores)
            ends = ("nothing_removed", "at_this_budget", "all_removed")
            expected = {end: manifest["expected"][end]["removal"] for end in ends}
            assert expected["nothing_removed"] < expected["all_removed"]
            if selector in ("mamushi", "oracle"):
                # It may well exceed the full removal's: what is left of the forget domain then
                # takes mass away from where the removed part was.
                assert expected["nothing_removed"] < expected["at_this_budget"]
        assert lists[1][:36] == lists[0]


def test_the_oracle_ranks_by_the_truth(demo: Path) -> None:
    path = demo / paths.SCORES.format(**CELL, selector="oracle")
    assert read_metadata(path)["details"]["spearman_with_truth"] == pytest.approx(1.0)


def test_retrained_models_leave_no_weights_and_endpoints_leave_trained_ones_alone(
    demo: Path,
) -> None:
    assert not list(demo.glob("results/runs/**/arms/retrained/**/*.safetensors"))
    tensors = load_file(demo / paths.TRAINED.format(**CELL, arm="gold"))
    assert len(tensors) == 2 + 3 * 9
    with safe_open(demo / "results/base/tiny-llama/model.safetensors", "pt") as base:
        for name, value in tensors.items():
            assert not value.equal(base.get_tensor(name)), name
    assert not list(demo.glob("results/**/*.state"))
    assert not list(demo.glob("results/**/.*.part"))


def test_the_report_is_one_page_with_figures_and_captions(demo: Path) -> None:
    run("--report", "results/report.html", directory=demo, config=science())
    page = (demo / "results/report.html").read_text(encoding="utf-8")
    for name in ("sad.png", "perplexity.png", "sad_summary.csv", "selection.csv"):
        assert name in page


def test_evidence_beside_what_retraining_found(ran: Ran, demo: Path) -> None:
    """The whole target, on top of what has run: nothing is retrained for it."""
    assert "rule retrain" not in ran.evidence
    assert "rule score:" not in ran.evidence
    for table in (*EVIDENCE_TABLES, "qualitative_ranking"):
        assert (
            len(read_table(demo / paths.TABLE.format(table=table), getattr(schemas, table.upper())))
            > 0
        )
    frontier = read_table(demo / paths.TABLE.format(table="frontier"), schemas.FRONTIER).to_pandas()
    assert set(frontier["selector"]) == set(SELECTORS)
    assert {0.0, 0.02, 0.3, 0.6, 0.98, 1.0} <= set(frontier["beta"])
    assert frontier["exact_removal"].notna().all()
    assert (frontier["removal_low"] <= frontier["removal_high"]).all()
    advice = read_table(demo / paths.TABLE.format(table="advice"), schemas.ADVICE).to_pandas()
    assert advice["measured"].notna().any()
    run("evidence", "--report", "results/evidence.html", directory=demo, config=science())
    page = (demo / "results/evidence.html").read_text(encoding="utf-8")
    for name in ("frontier.png", "advice.csv", "diagnostics.csv", "ranking.html"):
        assert name in page


def test_advice_and_verification_from_the_command_line(demo: Path) -> None:
    def mamushi(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mamushi", *words],
            cwd=demo,
            env=environment(PYTHONPATH=str(ROOT / "workflow")),
            capture_output=True,
            text=True,
            check=False,
        )

    advice = mamushi("advise", "--sad", "0.5")
    assert advice.returncode == 0, advice.stderr
    assert all(name in advice.stdout for name in SELECTORS)
    path = paths.MANIFEST.format(**CELL, selector="mamushi", beta="0.30")
    accepted = mamushi("verify", path)
    assert accepted.returncode == 0, accepted.stderr
    changed = json.loads((demo / path).read_text())
    (demo / path).rename(demo / "kept.json")
    try:
        changed["provenance"]["settings"]["seed"] = 5
        (demo / path).write_text(json.dumps(changed))
        refused = mamushi("verify", path)
    finally:
        (demo / "kept.json").replace(demo / path)
    assert refused.returncode == 2
    assert "seed" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_study_is_drawn_from_what_has_run(demo: Path) -> None:
    reverse = {
        "datasets": ["synthetic"],
        "models": ["tiny-llama"],
        "selectors": ["random", "anti_mamushi"],
    }
    config = science() | {"studies": {"reverse": reverse, "estimator": None}}
    said = run("studies", directory=demo, config=config).stdout
    assert "rule retrain" not in said
    figure = demo / paths.STUDY_FIGURE.format(study="reverse")
    assert figure.read_bytes().startswith(b"%PDF")


DRAWN = {"tables": 1, "truth": 1, "figure_sad": 1, "figure_perplexity": 1}
MEASURED = DRAWN | {"subgroups": 1}
CHANGES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    # mamushi and anti_mamushi are scored and retrained; every manifest quotes mamushi's estimate,
    # which is calibrated with its refits.
    "selectors": (
        {"mamushi": {"batch_size": 128}},
        {"score": 2, "refits": 2, "stability": 2, "calibrate": 1, "remove": 4}
        | {"manifests": 4, "retrain": 4}
        | MEASURED,
    ),
    "removal": ({"ratio": "oracle"}, {"calibrate": 1, "manifests": 4} | DRAWN),
    "grid": (
        {"budgets": [0.3, 0.45, 0.6]},
        {"remove": 4, "stability": 4, "manifests": 4, "retrain": 4} | MEASURED,
    ),
    "execution": ({"checkpoint_seconds": 5, "batch_tokens": 999}, {}),
}


@pytest.mark.parametrize("section", CHANGES)
def test_a_change_runs_what_it_affects(rerun: Rerun, section: str) -> None:
    """As tests/dag has it for every key, after a run that is not made up."""
    change, expected = CHANGES[section]
    assert rerun("all", **{section: change}) == expected


def test_a_learning_rate_runs_everything_from_the_contaminated_model_on(rerun: Rerun) -> None:
    changed = rerun("all", training={"learning_rate": 1e-3})
    assert not changed.keys() & {"examples", "tokens", "base_model"}
    assert changed["contaminate"] == changed["gold"] == changed["beta0"] == changed["embed"] == 1
    assert changed["retrain"] == 8


@pytest.mark.slow
def test_a_fine_tune_that_is_killed_goes_on_bit_for_bit(demo: Path, tmp_path: Path) -> None:
    """kill -9 in the middle of a fine-tune, then the same command."""
    config = science() | {"execution": {"checkpoint_seconds": 0}}
    target = paths.TRAINED.format(**CELL, arm="gold")
    # The data and the base model are those of the demo; only the fine-tune is to run.
    for part in ("results/data", "results/base", ".snakemake"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", demo / part, tmp_path / part], check=True)
    state = tmp_path / (paths.CARD.format(**CELL, arm="gold") + ".state")
    running = subprocess.Popen(
        command(target, directory=tmp_path, config=config),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    killed_at = _kill_at(state, b'"step": 5', running)
    said, _ = running.communicate(timeout=600)
    assert running.returncode != 0, said
    assert not (tmp_path / target).exists()
    assert state.exists()
    run(target, directory=tmp_path, config=config)
    resumed, undisturbed = load_file(tmp_path / target), load_file(demo / target)
    assert resumed.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        assert value.equal(resumed[name]), name
    log = read_table(
        tmp_path / paths.TRAIN_LOG.format(**CELL, arm="gold"), schemas.TRAIN_LOG
    ).to_pandas()
    assert list(log["step"]) == list(range(1, len(log) + 1))
    assert killed_at < len(log)


def _kill_at(state: Path, word: bytes, running: subprocess.Popen[str]) -> int:
    """Kill the stage's process when its checkpoint says ``word``; return the step it was at."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if state.exists():
            head = state.read_bytes()[:100_000].replace(b"\\", b"")
            found = head.find(b'"step": ')
            if found >= 0:
                step = int(head[found + 8 :].split(b"}")[0])
                if step >= 5:
                    for pid in _stage_processes(state):
                        os.kill(pid, signal.SIGKILL)
                    return step
        if running.poll() is not None:
            raise AssertionError(running.communicate()[0])
        time.sleep(0.01)
    raise AssertionError("the fine-tune never wrote a checkpoint")


def _stage_processes(state: Path) -> list[int]:
    """Processes of the stage that writes this state, the shell around it left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                folder = os.readlink(entry / "cwd")
            except OSError:
                continue
            if b"finetune" in words and folder == str(state.parents[7]):
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_what_models_say_of_the_texts(demo: Path, tmp_path: Path) -> None:
    """The benchmark's rankings are those of a text at a time: log-likelihoods by the library's own
    loss, and gradients that nothing projects."""
    cell = {"run": "results", "dataset": CELL["dataset"], "model": CELL["model"]}
    line = [sys.executable, ROOT / "benchmarks" / "likelihoods.py", *cell.values()]
    subprocess.run([*line, "--results", tmp_path], cwd=demo, env=environment(), check=True)
    (written,) = tmp_path.glob("likelihoods-*.txt")
    pairs = [line.split(" ", 1) for line in written.read_text().splitlines()]
    found = {name: float(value) for name, value in pairs if name != "#"}

    base = demo / paths.MODEL_CARD.format(model=CELL["model"])
    models = [AutoModelForCausalLM.from_pretrained(base.parent) for _ in range(2)]
    trained = demo / paths.TRAINED.format(**CELL, arm="contaminated")
    models[1].load_state_dict(load_file(trained), strict=False)
    matrices = [p for p in models[1].model.layers[-1].parameters() if p.ndim == 2]
    examples = pq.read_table(demo / paths.EXAMPLES.format(**CELL)).to_pylist()
    tokens = pq.read_table(demo / paths.TOKENS.format(**CELL))["tokens"].to_pylist()
    said, slopes, target = [], [], []
    for row, ids in zip(examples, tokens, strict=True):
        if row["section"] == "contamination":
            continue
        text = torch.tensor([ids[: whole()["training"]["max_length"]]])
        losses = [model(input_ids=text, labels=text).loss for model in models]
        parts = torch.autograd.grad(losses[1], matrices)
        slope = functional.normalize(torch.cat([p.flatten() for p in parts]), dim=0)
        if row["section"] == "inference":
            said.append(float(losses[0] - losses[1]))
            slopes.append(slope)
        elif row["domain"] == "forget":
            target.append(slope)
    forget = [row["domain"] == "forget" for row in examples if row["section"] == "inference"]
    assert found["memorized_auc"] == pytest.approx(roc_auc_score(forget, said), abs=2e-3)
    alike = torch.stack(slopes) @ torch.stack(target).mean(dim=0)
    assert found["less_auc"] == pytest.approx(roc_auc_score(forget, alike), abs=0.06)
    # Models of one domain each tell the domains apart.
    assert found["lm_ratio_auc"] > 0.7
    assert found["trak_beside_mamushi_low"] < found["trak_beside_mamushi"]


@pytest.mark.slow
def test_a_bank_of_retrainings(demo: Path, tmp_path: Path) -> None:
    """More removed texts leave a higher forget loss; a killed bank goes on from its table."""
    line = [sys.executable, ROOT / "benchmarks" / "bank.py", "results", CELL["dataset"]]
    line += [CELL["model"], "--results", tmp_path, "--subsets"]
    subprocess.run([*line, "3"], cwd=demo, env=environment(), check=True)
    (table,) = tmp_path.glob("bank-*.csv")
    first = csv.read_csv(table).to_pylist()
    assert [(row["subset"], row["seed"]) for row in first] == [
        (i, k) for i in range(3) for k in (0, 1)
    ]
    (tmp_path / table.name).write_bytes(table.read_bytes().rsplit(b"\n", 3)[0] + b"\n")
    subprocess.run([*line, "5"], cwd=demo, env=environment(), check=True)
    rows = csv.read_csv(table).to_pylist()
    assert rows[:6] == first and len(rows) == 10
    examples = read_table(demo / paths.EXAMPLES.format(**CELL), schemas.EXAMPLES)
    total = sum(
        pc.and_(
            pc.equal(examples["section"], "inference"), pc.equal(examples["domain"], "forget")
        ).to_pylist()
    )
    assert all(0.01 * total - 1 <= row["removed"] <= 0.5 * total + 1 for row in rows)
    assert (
        np.corrcoef([(row["removed"], row["forget_nll"]) for row in rows], rowvar=False)[0, 1] > 0.3
    )
    (written,) = tmp_path.glob("bank-*.txt")
    found = dict(each.split(" ", 1) for each in written.read_text().splitlines())
    assert {f"forget_nll_{name}_within" for name in SELECTORS} <= found.keys()
    assert "retain_nll_texts" in found


def test_rankings_beside_the_truth(demo: Path, tmp_path: Path) -> None:
    line = [sys.executable, ROOT / "benchmarks" / "paired.py", "results", "--results", tmp_path]
    subprocess.run(line, cwd=demo, env=environment(), check=True)
    (written,) = tmp_path.glob("paired-*.txt")
    found = dict(each.split(" ", 1) for each in written.read_text().splitlines())
    scores = {
        name: read_metadata(demo / paths.SCORES.format(**CELL, selector=name))["details"]
        for name in ("mamushi", "oracle")
    }
    assert float(found["synthetic/tiny-llama/spearman:oracle_seed0"]) == 1
    apart = scores["oracle"]["auc"] - scores["mamushi"]["auc"]
    assert found["synthetic/tiny-llama/auc:oracle_less_mamushi"] == f"{apart:+.4f} seeds 1"
