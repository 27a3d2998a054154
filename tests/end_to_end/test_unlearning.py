"""Unlearning in the demo at its smallest size: sweeps, their refinement, probes, and no weights."""

import json
from pathlib import Path

import pyarrow.csv as csv
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.configuration.arms import UNLEARNED, unlearned
from mamushi.evaluation.crossing import first_crossing
from tests.support.demo import CELL, Ran, Rerun, science, weights
from tests.support.workflow import run

PAIRS = [
    {"unlearner": unlearner, "selector": selector}
    for unlearner in ("neggrad_plus", "salun")
    for selector in ("random", "mamushi")
]
BUDGETS = science()["unlearning"]["budgets"]
TARGET = science()["unlearning"]["target"]


def test_no_more_than_three_unlearned_checkpoints_lie_on_disk(ran: Ran) -> None:
    folder, _, most = ran
    # A state is there at every step, so that none seen would be a test that looked away.
    assert 1 <= most <= 3
    assert weights(folder) == []
    assert not (folder / paths.CACHE).exists()


def test_only_cells_beside_a_crossing_were_added(demo: Path) -> None:
    for pair in PAIRS:
        sweep = read_json(demo / paths.SWEEP.format(**CELL, **pair))
        measured = {
            float(path.parent.name.removeprefix("beta"))
            for path in demo.glob(
                paths.PERPLEXITY.format(**CELL, arm=UNLEARNED.format(**pair, beta="*"))
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


def test_finer_steps_add_cells_beside_the_crossings_alone(demo: Path, rerun: Rerun) -> None:
    """What a dry run shows once the sweeps are known: a checkpoint has to run first."""
    config = science()
    config["unlearning"]["fine"] = 0.1
    assert rerun("unlearning", unlearning={"fine": 0.1})["refine"] == len(PAIRS)
    sweeps = [paths.SWEEP.format(**CELL, **pair) for pair in PAIRS]
    before = {path: (demo / path).read_bytes() for path in sweeps}
    try:
        run(*sweeps, directory=demo, config=config)
        said = run("unlearning", "--dry-run", directory=demo, config=config).stdout
        wanted = set()
        for pair, path in zip(PAIRS, sweeps, strict=True):
            sweep = read_json(demo / path)
            done = set(json.loads(before[path])["budgets"])
            wanted |= {
                paths.PERPLEXITY.format(**CELL, arm=unlearned(**pair, budget=budget))
                for budget in set(sweep["added"]) - done
            }
        listed = [
            word.strip(",")
            for line in said.splitlines()
            if line.strip().startswith("output:")
            for word in line.split()
            if word.strip(",").endswith("/perplexity.parquet")
        ]
        assert sorted(listed) == sorted(wanted)
        assert wanted, "no pair crossed the target"
    finally:
        run(*sweeps, directory=demo, config=science())
        assert before == {path: (demo / path).read_bytes() for path in sweeps}


def test_the_tables_say_what_the_curves_say(demo: Path) -> None:
    half = read_table(demo / paths.TABLE.format(table="half_gap"), schemas.HALF_GAP).to_pylist()
    assert [(row["unlearner"], row["selector"]) for row in half] == [
        (unlearner, selector)
        for unlearner in ("retraining", "neggrad_plus", "salun")
        for selector in ("random", "mamushi")
    ]
    curves = read_table(
        demo / paths.TABLE.format(table="unlearning"), schemas.UNLEARNING
    ).to_pylist()
    for row in half:
        pair = (row["unlearner"], row["selector"])
        curve = [c for c in curves if (c["unlearner"], c["selector"]) == pair]
        beta, height = [c["beta"] for c in curve], [c["recovery"] for c in curve]
        assert beta[0] == 0 and beta[-1] == 1
        assert row["budget"] == pytest.approx(first_crossing(beta, height, TARGET))
        assert row["censored"] == (row["budget"] is None)
        assert (row["seeds"], row["budget_low"]) == (1, None)
    again = csv.read_csv(demo / paths.TABLE_CSV.format(table="half_gap"))
    assert again.num_rows == len(half)
    for unlearner in ("neggrad_plus", "salun"):
        ends = {
            (c["ppl_forget"], c["ppl_retain"])
            for c in curves
            if c["unlearner"] == unlearner and c["beta"] == 1
        }
        assert len(ends) == 1, "the whole forget set is the same for every selector"


def test_generations_are_of_every_model_and_prompt(demo: Path) -> None:
    said = read_table(
        demo / paths.TABLE.format(table="generations"), schemas.GENERATIONS
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


def test_relearning_starts_where_unlearning_ended(demo: Path) -> None:
    table = read_table(demo / paths.TABLE.format(table="relearning"), schemas.RELEARNING)
    rows = table.to_pylist()
    assert [row["step"] for row in rows] == [0, 1, 4] * 3
    for row in rows:
        if row["source"] == "neggrad_plus" and row["step"] == 0:
            arm = unlearned("neggrad_plus", row["selector"], 0.4)
            path = demo / paths.PERPLEXITY.format(**CELL, arm=arm)
            forget = read_table(path, schemas.PERPLEXITY).to_pylist()[0]
            assert row["ppl_forget"] == pytest.approx(forget["perplexity"], rel=1e-5)


def test_other_prompts_ask_again_and_unlearn_no_other_cell(rerun: Rerun) -> None:
    changed = rerun("unlearning", probe={"prompts": ["one of one's own"]})
    assert changed["unlearn_and_probe"] == 2
    assert changed["generate"] == 3
    assert not changed.keys() & {"unlearn", "unlearn_whole", "retrain", "gold", "beta0"}


def test_an_unlearners_setting_runs_that_unlearner(rerun: Rerun) -> None:
    changed = rerun("unlearning", unlearners={"salun": {"learning_rate": 1.0e-4, "sparsity": 0.4}})
    assert changed["unlearn_whole"] == 1
    # Of two selectors, at the budgets that are known before the sweeps have been looked at again.
    assert changed["unlearn"] == 2 * len(BUDGETS)
    assert changed["refine"] == 2
    assert not changed.keys() & {"unlearn_and_probe", "retrain", "gold", "beta0", "score"}


def test_a_cap_or_a_target_runs_no_unlearning(rerun: Rerun) -> None:
    changed = rerun("unlearning", unlearning={"retain_cap": 2.0})
    assert changed == {"half_gap": 1, "figure_half_gap": 1}


def test_without_the_cache_the_numbers_are_the_same(demo: Path) -> None:
    target = paths.PERPLEXITY.format(**CELL, arm=unlearned(**PAIRS[0], budget=0.8))
    kept = read_table(demo / target, schemas.PERPLEXITY)["nll"].to_pylist()
    config = science() | {"execution": {"cache_trunk": False}}
    aside = demo / "aside.parquet"
    (demo / target).rename(aside)
    try:
        run(target, directory=demo, config=config)
        log = demo / "results/logs/unlearn/synthetic/tiny-llama/seed0/neggrad_plus/random"
        assert "trunk:" not in (log / "beta0.80.log").read_text()
        again = read_table(demo / target, schemas.PERPLEXITY)["nll"].to_pylist()
        assert again == pytest.approx(kept, rel=1e-5)
    finally:
        aside.replace(demo / target)


def test_a_list_of_ones_own_ends_in_a_model(demo: Path) -> None:
    """The first ids of a removal list, as a text file: unlearned, kept, and handed on."""
    removal = demo / paths.REMOVAL.format(**CELL, selector="mamushi", beta="0.40")
    ids = read_table(removal, schemas.REMOVALS)["id"].to_pylist()[:9]
    (demo / "mine.txt").write_text("".join(f"{i}\n" for i in ids))
    config = science()
    config["unlearning"] |= {
        "unlearners": ["npo"],
        "lists": {"mine": str(demo / "mine.txt")},
    }
    run("unlearned", directory=demo, config=config)
    where = {**CELL, "arm": "npo/lists/mine"}
    card = read_json(demo / paths.CARD.format(**where))
    assert card["removed"] == 9
    log = read_table(demo / paths.TRAIN_LOG.format(**where), schemas.UNLEARN_LOG)
    assert len(log) == card["steps"] == 9 * 5 // 8
    assert read_metadata(demo / paths.PERPLEXITY.format(**where))
    start = demo / paths.TRAINED.format(**CELL, arm="beta0")
    tensors = demo / paths.TRAINED.format(**where)
    base = demo / paths.MODEL_CARD.format(model="tiny-llama")
    from transformers import AutoModelForCausalLM

    from mamushi.cli import main

    out = demo / "model"
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
