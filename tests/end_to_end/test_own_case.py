"""A lab's own case: a contaminated model, a table of its training data, and no retraining."""

import csv
from pathlib import Path
from typing import Any

import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import read_table
from tests.support.lab import write_lab
from tests.support.workflow import run

CELL = {"dataset": "comments", "model": "ours", "seed": 0}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of two kinds of text, and the table that it was trained on."""
    folder = tmp_path_factory.mktemp("lab")
    write_lab(folder)
    return folder


def config(lab: Path) -> dict[str, Any]:
    """It stands alone, but for names that config.yaml has too."""
    return {
        "extends": None,
        "grid": {
            "datasets": ["comments"],
            "models": ["ours"],
            "seeds": [0],
            "budgets": [0.1, 0.25],
            "selectors": ["lr_cos", "mamushi"],
        },
        "datasets": {
            "comments": {
                "kind": "table",
                "path": str(lab / "comments.csv"),
                "text": "body",
                "id": "id",
                "forget": {"where": "source == 'theirs'"},
                "sections": {"inference": 1.0},
            }
        },
        "models": {"ours": {"source": str(lab / "ours"), "contaminated": True}},
        "selectors": {"mamushi": {"batch_size": 32, "hidden": [16], "seeds_averaged": 2}},
    }


@pytest.fixture(scope="module")
def done(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    said = run("removals", directory=folder, config=config(lab)).stdout
    assert "rule embed" in said
    for rule in ("contaminate", "gold", "beta0", "retrain", "evaluate"):
        assert f"rule {rule}:" not in said
    return folder


def test_it_ends_with_ranking_and_lists(lab: Path, done: Path) -> None:
    with (lab / "comments.csv").open(encoding="utf-8") as handle:
        source = {row["id"]: row["source"] for row in csv.DictReader(handle)}
    for selector in ("lr_cos", "mamushi"):
        scores = read_table(done / paths.SCORES.format(**CELL, selector=selector), schemas.SCORES)
        ranked = scores.to_pandas().dropna(subset=["rank"])
        assert all(source[i] == "theirs" for i in ranked["id"])
        assert sorted(ranked["rank"]) == list(range(1, len(ranked) + 1))
        removal = done / paths.REMOVAL.format(**CELL, selector=selector, beta="0.10")
        ids = read_table(removal, schemas.REMOVALS)["id"].to_pylist()
        assert len(ids) == len(ranked) // 10
        assert ids == list(ranked.sort_values("rank")["id"])[: len(ids)]


def test_the_start_page_links_the_lists(done: Path) -> None:
    page = (done / "results" / "index.html").read_text(encoding="utf-8")
    removal = paths.REMOVAL.format(**CELL, selector="mamushi", beta="0.10")
    assert f'href="{removal.removeprefix("results/")}"' in page
    assert "forget texts are ranked, against" in page


def test_nothing_is_left_to_do(lab: Path, done: Path) -> None:
    # The default target is the same here, because nothing can be measured.
    for target in ("removals", "all"):
        said = run(target, "--dry-run", directory=done, config=config(lab)).stdout
        assert "Nothing to be done" in said


def test_measurements_say_what_is_missing_and_run_when_it_is_there(lab: Path, done: Path) -> None:
    table, given = paths.TABLE.format(table="sad"), config(lab)
    said = run(table, "--dry-run", directory=done, config=given, check=False)
    assert said.returncode != 0
    assert "models.ours.base" in said.stdout
    given["models"]["ours"]["base"] = "clean"
    given["models"]["clean"] = {"source": str(lab / "ours")}
    said = run(table, "--dry-run", directory=done, config=given, check=False)
    assert "datasets.comments.sections" in said.stdout
    given["datasets"]["comments"]["sections"] = {"inference": 0.75, "evaluation": 0.25}
    said = run("--dry-run", "--quiet", "rules", directory=done, config=given).stdout
    counted = {words[0]: words[1] for line in said.splitlines() if len(words := line.split()) == 2}
    assert counted["retrain"] == "4"
    assert counted["gold"] == counted["beta0"] == "1"
    assert "contaminate" not in counted
    target = paths.PERPLEXITY.format(
        dataset="comments", model="ours", seed=0, arm="retrained/mamushi/beta0.25"
    )
    run(target, directory=done, config=given)
    assert read_table(done / target, schemas.PERPLEXITY)["domain"].to_pylist() == [
        "forget",
        "retain",
    ]
