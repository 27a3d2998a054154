"""The demo at its smallest size, from the first text to the report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pytest
import yaml
from safetensors import safe_open
from safetensors.torch import load_file

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.configuration.settings import EVIDENCE_TABLES
from tests.support.workflow import ROOT, command, environment, run

SELECTORS = ["random", "mamushi", "anti_mamushi", "oracle"]
CELL = {"dataset": "synthetic", "model": "tiny-llama", "seed": 0}


def science(**training: object) -> dict[str, Any]:
    """The demo's configuration, at its smallest: one seed, two budgets, fewer texts."""
    demo: dict[str, Any] = yaml.safe_load(
        (ROOT / "profiles/demo/science.yaml").read_text(encoding="utf-8")
    )
    demo["grid"] |= {"seeds": [0], "budgets": [0.3, 0.6], "selectors": SELECTORS}
    demo["datasets"]["synthetic"]["sizes"] = {
        section: {"forget": 120, "retain": 240}
        for section in ("contamination", "inference", "evaluation")
    }
    # Long enough a training that a kill comes in the middle of it.
    demo["training"] |= {"epochs": 3, "learning_rate": 2.0e-3, **training}
    return demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole workflow has run."""
    folder = tmp_path_factory.mktemp("demo")
    run("--cores", "2", directory=folder, config=science())
    return folder


def test_a_second_run_does_nothing(demo: Path) -> None:
    said = run("--dry-run", directory=demo, config=science()).stdout
    assert "Nothing to be done" in said


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


def test_each_set_of_removed_texts_is_trained_on_once(demo: Path) -> None:
    cards = [
        read_json(path) for path in sorted(demo.glob("results/runs/**/retrained/**/card.json"))
    ]
    logs = [path.read_text() for path in sorted(demo.glob("results/logs/retrain/**/*.log"))]
    assert len(cards) == len(logs) == len(SELECTORS) * 2
    trained = [log for log in logs if "took over" not in log]
    assert len(trained) == len({card["removal_set"] for card in cards}) == len(cards)


def test_a_set_that_two_selectors_remove_is_trained_on_once(demo: Path) -> None:
    """At one budget a selector has run before the other, at the next they run at the same time."""
    config = science()
    config["grid"] |= {"selectors": ["oracle", "twin"], "budgets": [0.3, 0.8]}
    config["selectors"] = {**config.get("selectors", {}), "twin": {"kind": "oracle"}}
    cells = [(selector, beta) for beta in ("0.30", "0.80") for selector in ("oracle", "twin")]
    targets = [
        paths.PERPLEXITY.format(**CELL, selector=selector, beta=beta) for selector, beta in cells
    ]
    said = run(*targets, "--cores", "2", directory=demo, config=config).stdout
    assert said.count("rule retrain:") == 3
    logs = [
        (demo / f"results/logs/retrain/synthetic/tiny-llama/seed0/{selector}/beta{beta}.log")
        for selector, beta in cells
    ]
    took_over = ["took over" in log.read_text() for log in logs]
    assert took_over[:2] == [False, True]
    assert sorted(took_over[2:]) == [False, True]
    measured = [read_table(demo / target, schemas.PERPLEXITY) for target in targets]
    assert measured[0].equals(measured[1])
    assert measured[2].equals(measured[3])
    assert not measured[0].equals(measured[2])


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
    assert not list(demo.glob("results/runs/**/retrained/**/*.safetensors"))
    tensors = load_file(demo / paths.TRAINED.format(**CELL, endpoint="gold"))
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


def test_evidence_beside_what_retraining_found(demo: Path) -> None:
    """The whole target, on top of what has run: nothing is retrained for it."""
    config = science()
    said = run("evidence", "--cores", "2", directory=demo, config=config).stdout
    assert "rule retrain:" not in said
    assert "rule score:" not in said
    for table in (*EVIDENCE_TABLES, "qualitative_ranking"):
        assert len(read_table(demo / paths.TABLE.format(table=table), table)) > 0
    frontier = read_table(demo / paths.TABLE.format(table="frontier"), schemas.FRONTIER).to_pandas()
    assert set(frontier["selector"]) == set(SELECTORS)
    assert {0.0, 0.05, 0.3, 0.6, 0.95, 1.0} <= set(frontier["beta"])
    assert frontier["exact_removal"].notna().all()
    assert (frontier["removal_low"] <= frontier["removal_high"]).all()
    advice = read_table(demo / paths.TABLE.format(table="advice"), schemas.ADVICE).to_pandas()
    predicted = advice.groupby("selector")["predicted_area"].first()
    assert predicted["oracle"] < predicted["random"] < predicted["anti_mamushi"]
    assert advice["measured_area"].notna().all()
    run("evidence", "--report", "results/evidence.html", directory=demo, config=config)
    page = (demo / "results/evidence.html").read_text(encoding="utf-8")
    for name in ("frontier.png", "advice.csv", "diagnostics.csv", "ranking.html"):
        assert name in page
    assert "Nothing to be done" in run("evidence", "-n", directory=demo, config=config).stdout


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

    run("evidence", "--cores", "2", directory=demo, config=science())
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
    assert "rule retrain:" not in said
    figure = demo / paths.STUDY_FIGURE.format(study="reverse")
    assert figure.read_bytes().startswith(b"%PDF")


def rerun(demo: Path, **changes: dict[str, Any]) -> dict[str, int]:
    """Jobs by rule that a change of the configuration's sections would run again."""
    config = science()
    for section, change in changes.items():
        config[section] = {**config.get(section, {}), **change}
    said = run("--dry-run", "--quiet", "rules", directory=demo, config=config).stdout
    words = [line.split() for line in said.splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit() and w[0] != "total"}


DRAWN = {"tables": 1, "figure_sad": 1, "figure_perplexity": 1, "all": 1}


def test_figure_style_runs_figures_alone(demo: Path) -> None:
    drawn = {"figure_sad": 1, "figure_perplexity": 1, "all": 1}
    assert rerun(demo, figures={"panel_width": 3.0}) == drawn


def test_a_selectors_setting_runs_that_selector_and_what_derives_from_it(demo: Path) -> None:
    # mamushi and anti_mamushi are scored and retrained; every manifest quotes mamushi's estimate.
    changed = rerun(demo, selectors={"mamushi": {"batch_size": 128}})
    scored = {"score": 2, "remove": 4, "manifests": 4, "retrain": 4}
    assert changed == scored | DRAWN


def test_what_estimates_the_ratio_runs_manifests_alone(demo: Path) -> None:
    changed = rerun(demo, removal={"ratio": "oracle"})
    assert changed == {"manifests": 4, "all": 1} | DRAWN


def test_a_budget_runs_its_cells(demo: Path) -> None:
    changed = rerun(demo, grid={"budgets": [0.3, 0.45, 0.6]})
    assert changed == {"remove": 4, "manifests": 4, "retrain": 4} | DRAWN


def test_a_learning_rate_runs_everything_from_the_contaminated_model_on(demo: Path) -> None:
    changed = rerun(demo, training={"learning_rate": 1e-3})
    assert not changed.keys() & {"examples", "tokens", "base_model"}
    assert changed["contaminate"] == changed["gold"] == changed["beta0"] == changed["embed"] == 1
    assert changed["retrain"] == 8


def test_longer_texts_for_the_embedder_train_nothing_but_what_is_selected(demo: Path) -> None:
    changed = rerun(demo, embedding={"max_length": 32})
    assert changed["embed"] == 1
    assert not changed.keys() & {"contaminate", "gold", "beta0", "tokens", "base_model"}


def test_how_to_run_is_no_reason_to_run(demo: Path) -> None:
    changed = science() | {"execution": {"checkpoint_seconds": 5, "batch_tokens": 999}}
    assert "Nothing to be done" in run("--dry-run", directory=demo, config=changed).stdout


def test_a_fine_tune_that_is_killed_goes_on_bit_for_bit(demo: Path, tmp_path: Path) -> None:
    """kill -9 in the middle of a fine-tune, then the same command."""
    config = science() | {"execution": {"checkpoint_seconds": 0}}
    target = paths.TRAINED.format(**CELL, endpoint="gold")
    # The data and the base model are those of the demo; only the fine-tune is to run.
    for part in ("results/data", "results/base", ".snakemake"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", demo / part, tmp_path / part], check=True)
    state = tmp_path / (paths.TRAIN_CARD.format(**CELL, endpoint="gold") + ".state")
    running = subprocess.Popen(
        command(target, directory=tmp_path, config=config),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    killed_at = _kill_at(state, b'"step": 5', running)
    said, _ = running.communicate(timeout=60)
    assert running.returncode != 0, said
    assert not (tmp_path / target).exists()
    assert state.exists()
    run(target, directory=tmp_path, config=config)
    resumed, undisturbed = load_file(tmp_path / target), load_file(demo / target)
    assert resumed.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        assert value.equal(resumed[name]), name
    log = read_table(
        tmp_path / paths.TRAIN_LOG.format(**CELL, endpoint="gold"), schemas.TRAIN_LOG
    ).to_pandas()
    assert list(log["step"]) == list(range(1, len(log) + 1))
    assert killed_at < len(log)


def _kill_at(state: Path, word: bytes, running: subprocess.Popen[str]) -> int:
    """Kill the stage's process when its checkpoint says ``word``; return the step it was at."""
    deadline = time.monotonic() + 120
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
            if b"finetune" in words and folder == str(state.parents[6]):
                found.append(int(entry.name))
    return found
