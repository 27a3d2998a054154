"""The demo at its smallest size, from the first text to the report and to half-gap budgets."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.torch import load_file

from mamushi.evaluation.half_gap import first_crossing
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table
from mamushi_extras.evidence.schemas import AGREEMENT
from mamushi_extras.left.schemas import RELAPSE
from mamushi_extras.theory.schemas import THEORY
from tests.support.demo import CELL, SELECTORS, science
from tests.support.workflow import run

EVERY_TABLE = paths.TABLE.format(table="*")


def table(demo: Path, kind: Table) -> pa.Table:
    return read_table(demo / paths.TABLE.format(table=kind.name), kind)


def test_a_second_run_does_nothing(demo: Path) -> None:
    targets = ("all", "evidence", "unlearning")
    assert "Nothing to be done" in run(*targets, "-n", directory=demo, config=science()).stdout


def test_curves_have_all_budgets_between_shared_ends(demo: Path) -> None:
    sad = table(demo, schemas.SAD).to_pandas()
    for _, rows in sad.groupby("selector"):
        assert sorted(rows["beta"]) == [0.0, 0.3, 0.6, 1.0]
    assert sad.loc[sad["beta"] == 0.0, "sad"].nunique() == 1
    assert (sad.loc[sad["beta"] == 1.0, "sad"] == 0).all()
    summary = csv.read_csv(demo / paths.TABLE_CSV.format(table="sad_summary")).to_pandas()
    areas = summary.groupby("selector")["area_mean"].first()
    assert sorted(areas.index) == sorted(SELECTORS)
    assert areas["oracle"] < areas["anti_mamushi"]


def test_removals_are_nested_and_their_manifests_name_their_sources(demo: Path) -> None:
    for selector in SELECTORS:
        scores, lists = demo / paths.SCORES.format(**CELL, selector=selector), []
        for budget, size in (("0.30", 36), ("0.60", 72)):
            where = {**CELL, "selector": selector, "beta": budget}
            table = read_table(demo / paths.REMOVAL.format(**where), schemas.REMOVALS)
            lists.append(table["id"].to_pylist())
            manifest = read_json(demo / paths.MANIFEST.format(**where))
            assert manifest["removed"] == len(lists[-1]) == size
            assert manifest["provenance"]["inputs"]["scores"] == sha256(scores)
        assert lists[1][:36] == lists[0]


def test_retrained_models_leave_no_weights_and_endpoints_leave_trained_ones_alone(
    demo: Path,
) -> None:
    assert not list(demo.glob("results/runs/**/arms/retrained/**/*.safetensors"))
    tensors = load_file(demo / paths.TRAINED.format(**CELL, arm="gold"))
    assert len(tensors) == 2 + 1 * 9  # embedding, head, and one block of two
    with safe_open(demo / "results/base/tiny-llama/model.safetensors", "pt") as base:
        for name, value in tensors.items():
            assert not value.equal(base.get_tensor(name)), name
    assert not list(demo.glob("results/**/*.state"))
    assert not list(demo.glob("results/**/.*.part"))


def test_evidence_has_all_its_tables_and_one_report_has_figures_and_captions(demo: Path) -> None:
    tables = {path.stem: pq.read_metadata(path).num_rows for path in demo.glob(EVERY_TABLE)}
    assert tables.keys() > {"frontier", "calibration", "advice", "diagnostics", "geometry"}
    assert all(tables.values()), tables
    run("all", "evidence", "--report", "results/report.html", directory=demo, config=science())
    page = (demo / "results/report.html").read_text(encoding="utf-8")
    for name in ("sad.png", "perplexity.png", "sad_summary.csv", "frontier.png", "ranking.html"):
        assert name in page


def test_by_the_truth_nothing_beats_the_oracle_and_the_paper_holds(demo: Path) -> None:
    by_budget = table(demo, schemas.FRONTIER).to_pandas().set_index(["selector", "beta"])
    by_budget = by_budget.sort_index()
    oracle = by_budget.loc["oracle"]
    for name in {*SELECTORS} - {"oracle"}:
        other = by_budget.loc[name]
        assert (oracle["removal_true"] >= other["removal_true"] - 1e-9).all()
        assert (oracle["preservation_true"] <= other["preservation_true"] + 1e-9)[:0.9].all()
        assert oracle["removal_true"][0.3] > other["removal_true"][0.3]
    assert table(demo, THEORY)["holds"].to_pylist() == [True] * (6 + 2 * 5)
    # Of each pair of selectors, at both budgets.
    assert len(table(demo, AGREEMENT)) == 2 * 4 * 3 / 2


# Unlearning ---------------------------------------------------------------------------------------

TARGET = science()["unlearning"]["target"]


def test_the_tables_say_what_the_curves_say(demo: Path) -> None:
    half = table(demo, schemas.HALF_GAP).to_pylist()
    assert [(row["unlearner"], row["selector"]) for row in half] == [
        (unlearner, selector)
        for unlearner in ("retraining", "neggrad_plus")
        for selector in ("random", "mamushi")
    ]
    curves = table(demo, schemas.UNLEARNING).to_pylist()
    for row in half:
        pair = (row["unlearner"], row["selector"])
        curve = [c for c in curves if (c["unlearner"], c["selector"]) == pair]
        beta, height = [c["beta"] for c in curve], [c["recovery"] for c in curve]
        assert beta[0] == 0 and beta[-1] == 1
        assert row["budget"] == pytest.approx(first_crossing(beta, height, TARGET))
        assert row["censored"] == (row["budget"] is None)
        assert (row["seeds"], row["budget_low"]) == (1, None)
    unlearned_ = [c for c in curves if c["unlearner"] == "neggrad_plus" and c["beta"] == 1]
    ends = {(c["ppl_forget"], c["ppl_retain"]) for c in unlearned_}
    assert len(ends) == 1, "the whole forget set is the same for every selector"


def test_relearning_ends_in_a_table(demo: Path) -> None:
    assert table(demo, RELAPSE)["step"].to_pylist() == [1, 4] * 4


def test_a_list_of_ones_own_ends_in_a_model(demo: Path) -> None:
    """The first ids of a removal list, as a text file: unlearned and kept."""
    removal = demo / paths.REMOVAL.format(**CELL, selector="mamushi", beta="0.30")
    ids = read_table(removal, schemas.REMOVALS)["id"].to_pylist()[:9]
    (demo / "mine.txt").write_text("".join(f"{i}\n" for i in ids))
    config = science()
    config["unlearning"] |= {"unlearners": ["salun"], "lists": {"mine": str(demo / "mine.txt")}}
    run("unlearned", directory=demo, config=config)
    where = {**CELL, "arm": "salun/lists/mine"}
    card = read_json(demo / paths.CARD.format(**where))
    assert card["removed"] == 9
    log = read_table(demo / paths.TRAIN_LOG.format(**where), schemas.UNLEARN_LOG)
    assert len(log) == card["steps"] == 9 * 5 // 8
    assert read_metadata(demo / paths.PERPLEXITY.format(**where))
    assert (demo / paths.TRAINED.format(**where)).is_file()
