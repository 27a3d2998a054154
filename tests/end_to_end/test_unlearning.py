"""Unlearning in the demo at its smallest size: sweeps, their refinement, probes, and no weights."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.evaluation.crossing import first_crossing
from tests.end_to_end.test_demo import science as demo_science
from tests.support.workflow import command, run, warmed

CELL = {"dataset": "synthetic", "model": "tiny-llama", "seed": 0}
PAIRS = [
    {"unlearner": unlearner, "selector": selector}
    for unlearner in ("neggrad_plus", "salun")
    for selector in ("random", "mamushi")
]
BUDGETS = [0.4, 0.8]
TARGET = 0.05


def science() -> dict[str, Any]:
    """The demo's configuration at its smallest, and a target that so few steps can reach."""
    demo = demo_science()
    demo["unlearning"] |= {"budgets": BUDGETS, "target": TARGET}
    demo["unlearners"] = {
        # The smallest start knows so little that its forget loss is near the paper's limit.
        "neggrad_plus": {"learning_rate": 1.0e-3, "stop_forget_loss": 6.0},
        "salun": {"learning_rate": 1.0e-4},
    }
    demo["probe"] |= {"budget": 0.4, "relearning": {"steps": [1, 4], "learning_rate": 1.0e-3}}
    return demo


def weights(folder: Path) -> list[Path]:
    """Whatever holds the weights of an unlearned model: tensors, states, their unfinished parts."""
    found = folder.glob("results/runs/**/unlearned/**/*")
    return [path for path in found if path.suffix in (".safetensors", ".state", ".part")]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder in which the target has run with two jobs at a time, and the most unlearned
    checkpoints that lay in it at once, with one written at every step."""
    folder = tmp_path_factory.mktemp("unlearning")
    config = science() | {"execution": {"checkpoint_seconds": 0}}
    line = command("unlearning", "--cores", "2", directory=folder, config=config)
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(
            line, env=warmed(), stdout=said, stderr=subprocess.STDOUT, text=True
        )
        most = 0
        while running.poll() is None:
            most = max(most, len(weights(folder)))
            time.sleep(0.1)
    assert running.returncode == 0, (folder / "said.txt").read_text()
    return folder, most


def jobs(said: str) -> dict[str, int]:
    words = [line.split() for line in said.splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit() and w[0] != "total"}


def rerun(folder: Path, config: dict[str, Any], target: str = "unlearning") -> dict[str, int]:
    """Jobs by rule that the target would run in the folder."""
    return jobs(run(target, "--dry-run", "-q", "rules", directory=folder, config=config).stdout)


def test_no_more_than_three_unlearned_checkpoints_lie_on_disk(swept: tuple[Path, int]) -> None:
    folder, most = swept
    # A state is there at every step, so that none seen would be a test that looked away.
    assert 1 <= most <= 3
    assert weights(folder) == []
    assert not (folder / paths.CACHE).exists()


def test_a_second_run_does_nothing(swept: tuple[Path, int]) -> None:
    said = run("unlearning", "--dry-run", directory=swept[0], config=science()).stdout
    assert "Nothing to be done" in said


def test_only_cells_beside_a_crossing_were_added(swept: tuple[Path, int]) -> None:
    folder, _ = swept
    for pair in PAIRS:
        sweep = read_json(folder / paths.SWEEP.format(**CELL, **pair))
        measured = {
            float(path.stem.removeprefix("beta"))
            for path in folder.glob(
                paths.PERPLEXITY_UNLEARNED.format(**CELL, **pair, beta="*").replace("beta*", "*")
            )
        }
        assert measured == set(sweep["budgets"]) == {*BUDGETS, *sweep["added"]}
        if sweep["crossing"] is None:
            assert sweep["added"] == []
            continue
        edges = [0.0, *BUDGETS, 1.0]
        low = max(edge for edge in edges if edge < sweep["crossing"])
        high = min(edge for edge in edges if edge >= sweep["crossing"])
        inside = [b for b in (0.2, 0.4, 0.6, 0.8) if low < b < high]
        assert sweep["added"] == pytest.approx(inside)


def test_finer_steps_add_cells_beside_the_crossings_alone(swept: tuple[Path, int]) -> None:
    """What a dry run shows once the sweeps are known: a checkpoint has to run first."""
    folder, _ = swept
    config = science()
    config["unlearning"]["fine"] = 0.1
    assert rerun(folder, config)["refine"] == len(PAIRS)
    sweeps = [paths.SWEEP.format(**CELL, **pair) for pair in PAIRS]
    before = {path: (folder / path).read_bytes() for path in sweeps}
    try:
        run(*sweeps, directory=folder, config=config)
        said = run("unlearning", "--dry-run", directory=folder, config=config).stdout
        wanted = set()
        for pair, path in zip(PAIRS, sweeps, strict=True):
            sweep = read_json(folder / path)
            done = set(json.loads(before[path])["budgets"])
            wanted |= {
                paths.PERPLEXITY_UNLEARNED.format(**CELL, **pair, beta=paths.beta(budget))
                for budget in set(sweep["added"]) - done
            }
        listed = [
            word.strip(",")
            for line in said.splitlines()
            if line.strip().startswith("output:")
            for word in line.split()
            if "/perplexity/" in word
        ]
        assert sorted(listed) == sorted(wanted)
        assert wanted, "no pair crossed the target"
    finally:
        run(*sweeps, "--forceall", "--until", "refine", directory=folder, config=science())


def test_the_tables_say_what_the_curves_say(swept: tuple[Path, int]) -> None:
    folder, _ = swept
    half = read_table(folder / paths.TABLE.format(table="half_gap"), schemas.HALF_GAP).to_pylist()
    assert [(row["unlearner"], row["selector"]) for row in half] == [
        (unlearner, selector)
        for unlearner in ("retraining", "neggrad_plus", "salun")
        for selector in ("random", "mamushi")
    ]
    curves = read_table(
        folder / paths.TABLE.format(table="unlearning"), schemas.UNLEARNING
    ).to_pylist()
    for row in half:
        pair = (row["unlearner"], row["selector"])
        curve = [c for c in curves if (c["unlearner"], c["selector"]) == pair]
        beta, height = [c["beta"] for c in curve], [c["recovery"] for c in curve]
        assert beta[0] == 0 and beta[-1] == 1
        assert row["budget"] == pytest.approx(first_crossing(beta, height, TARGET))
        assert row["censored"] == (row["budget"] is None)
        assert (row["seeds"], row["budget_low"]) == (1, None)
    again = csv.read_csv(folder / paths.TABLE_CSV.format(table="half_gap"))
    assert again.num_rows == len(half)
    for unlearner in ("neggrad_plus", "salun"):
        ends = {
            (c["ppl_forget"], c["ppl_retain"])
            for c in curves
            if c["unlearner"] == unlearner and c["beta"] == 1
        }
        assert len(ends) == 1, "the whole forget set is the same for every selector"


def test_generations_are_of_every_model_and_prompt(swept: tuple[Path, int]) -> None:
    folder, _ = swept
    said = read_table(
        folder / paths.TABLE.format(table="generations"), schemas.GENERATIONS
    ).to_pylist()
    models = [(row["source"], row["selector"]) for row in said]
    assert len(models) == 3 * 5
    assert models[:5] == [
        ("base", None),
        ("contaminated", None),
        ("gold", None),
        ("neggrad_plus", "random"),
        ("neggrad_plus", "mamushi"),
    ]
    for row in said:
        assert 1 <= row["tokens"] <= 12
        assert row["gold_log_likelihood"] < 0
        assert 0 <= row["repetition"] <= 1


def test_relearning_starts_where_unlearning_ended(swept: tuple[Path, int]) -> None:
    folder, _ = swept
    table = read_table(folder / paths.TABLE.format(table="relearning"), schemas.RELEARNING)
    rows = table.to_pylist()
    assert [row["step"] for row in rows] == [0, 1, 4] * 3
    for row in rows:
        if row["source"] == "neggrad_plus" and row["step"] == 0:
            where = {**CELL, "unlearner": "neggrad_plus", "selector": row["selector"]}
            path = folder / paths.PERPLEXITY_UNLEARNED.format(**where, beta="0.40")
            forget = read_table(path, schemas.PERPLEXITY).to_pylist()[0]
            assert row["ppl_forget"] == pytest.approx(forget["perplexity"], rel=1e-5)


def test_other_prompts_ask_again_and_unlearn_no_other_cell(swept: tuple[Path, int]) -> None:
    config = science()
    config["probe"]["prompts"] = ["one of one's own"]
    changed = rerun(swept[0], config)
    assert changed["unlearn_and_probe"] == 2
    assert changed["generate"] == 3
    assert not changed.keys() & {"unlearn", "unlearn_whole", "retrain", "gold", "beta0"}


def test_an_unlearners_setting_runs_that_unlearner(swept: tuple[Path, int]) -> None:
    config = science()
    config["unlearners"]["salun"]["sparsity"] = 0.4
    changed = rerun(swept[0], config)
    assert changed["unlearn_whole"] == 1
    # Of two selectors, at the budgets that are known before the sweeps have been looked at again.
    assert changed["unlearn"] == 2 * len(BUDGETS)
    assert changed["refine"] == 2
    assert not changed.keys() & {"unlearn_and_probe", "retrain", "gold", "beta0", "score"}


def test_a_cap_or_a_target_runs_no_unlearning(swept: tuple[Path, int]) -> None:
    config = science()
    config["unlearning"]["retain_cap"] = 2.0
    assert rerun(swept[0], config) == {"half_gap": 1, "figure_half_gap": 1, "unlearning": 1}


def test_without_the_cache_the_numbers_are_the_same(swept: tuple[Path, int]) -> None:
    folder, _ = swept
    target = paths.PERPLEXITY_UNLEARNED.format(**CELL, **PAIRS[0], beta="0.80")
    kept = read_table(folder / target, schemas.PERPLEXITY)["nll"].to_pylist()
    config = science() | {"execution": {"cache_trunk": False}}
    aside = folder / "aside.parquet"
    (folder / target).rename(aside)
    try:
        run(target, directory=folder, config=config)
        log = folder / "results/logs/unlearn/synthetic/tiny-llama/seed0/neggrad_plus/random"
        assert "trunk:" not in (log / "beta0.80.log").read_text()
        again = read_table(folder / target, schemas.PERPLEXITY)["nll"].to_pylist()
        assert again == pytest.approx(kept, rel=1e-5)
    finally:
        aside.replace(folder / target)


def test_a_list_of_ones_own_ends_in_a_model(swept: tuple[Path, int]) -> None:
    """The first ids of a removal list, as a text file: unlearned, kept, and handed on."""
    folder, _ = swept
    removal = folder / paths.REMOVAL.format(**CELL, selector="mamushi", beta="0.40")
    ids = read_table(removal, schemas.REMOVALS)["id"].to_pylist()[:9]
    (folder / "mine.txt").write_text("".join(f"{i}\n" for i in ids))
    config = science()
    config["unlearning"] |= {
        "unlearners": ["npo"],
        "lists": {"mine": str(folder / "mine.txt")},
    }
    run("unlearned", directory=folder, config=config)
    where = {**CELL, "unlearner": "npo", "list": "mine"}
    card = read_json(folder / paths.LISTED_CARD.format(**where))
    assert card["removed"] == 9
    log = read_table(folder / paths.LISTED_LOG.format(**where), schemas.UNLEARN_LOG)
    assert len(log) == card["steps"] == 9 * 5 // 8
    assert read_metadata(folder / paths.LISTED_PERPLEXITY.format(**where))
    start = folder / paths.TRAINED.format(**CELL, endpoint="beta0")
    tensors = folder / paths.LISTED_TENSORS.format(**where)
    base = folder / paths.MODEL_CARD.format(model="tiny-llama")
    from transformers import AutoModelForCausalLM

    from mamushi.cli import main

    out = folder / "model"
    words = ["export", "--model-card", str(base), "--trained", str(start), str(tensors)]
    assert main([*words, "--out", str(out)]) == 0
    AutoModelForCausalLM.from_pretrained(out)


def test_a_list_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    config = science()
    said = run("unlearned", "--dry-run", directory=tmp_path, config=config, check=False)
    assert said.returncode != 0
    assert "unlearning.lists" in said.stdout
    config["unlearning"]["lists"] = {"mine": str(tmp_path / "nowhere.txt")}
    said = run("unlearned", "--dry-run", directory=tmp_path, config=config, check=False)
    assert "unlearning.lists.mine" in said.stdout
    assert "no such file" in said.stdout
