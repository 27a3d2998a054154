"""The core knows no room beside it, and works where there is none."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.registry import PACKAGES
from tests.support import small_grid, workflow
from tests.support.workflow import ROOT, output_of

PACKAGE = PACKAGES / "mamushi_extras"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the workflow without the rooms beside the core."""
    folder = tmp_path_factory.mktemp("alone")
    for name in ("workflow", "envs", "profiles"):
        ignored = shutil.ignore_patterns("__pycache__", PACKAGE.name)
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder)
    for path in (folder / "config.yaml", folder / "profiles/demo/science.yaml"):
        text = re.sub(r", (logit_bias|tilt|gaussian)\b", "", path.read_text())
        path.write_text(re.sub(r"^  ((sim)?npo|relearning): .*\n", "", text, flags=re.M))
    # In the place of an installed one.
    (folder / "workflow" / f"{PACKAGE.name}.py").write_text("raise ImportError\n")
    return folder


def run(alone: Path, *words: str | Path, cwd: Path | None = None) -> str:
    """Run Python in the copy. Returns what it prints."""
    env = {**os.environ, "PYTHONPATH": str(alone / "workflow")}
    return output_of(sys.executable, *words, cwd=cwd or alone, env=env)


@pytest.fixture(scope="module")
def core(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without what is for a user's own table."""
    ignored = shutil.ignore_patterns("mamushi_curate")
    return Path(shutil.copytree(alone, tmp_path_factory.mktemp("core") / "core", ignore=ignored))


@pytest.mark.parametrize("targets", [["all", "evidence"], ["unlearning"]], ids=" ".join)
def test_the_rules_of_the_core_stand_alone(core: Path, targets: list[str]) -> None:
    profile = ("--profile", "profiles/demo", "--dry-run")
    printed = run(core, "-m", "snakemake", *targets, *profile)
    assert "retrain" in printed
    assert not {"posterior", "spans", "membership"} & {*printed.split()}


@pytest.mark.slow
def test_the_core_makes_the_same_values(core: Path, tmp_path: Path) -> None:
    """Of one cell: data, models, embeddings, a ranking, a retrained and an unlearned model."""
    config = tmp_path / "config.json"
    # What passes start from changes the order of sums in unlearning; the deep NLL is of a room.
    shallow = {**small_grid.CONFIG["evaluation"], "deep_tokens": 0}
    without = {"execution": {"cache_trunk": False}, "evaluation": shallow}
    config.write_text(json.dumps(small_grid.CONFIG | without), encoding="utf-8")
    options = ("--configfile", config, "--cores", "2", "--quiet", "all")
    run(core, "-m", "snakemake", *options, "--directory", tmp_path / "core", *small_grid.FEW)
    workflow.run(*small_grid.FEW, *options, directory=tmp_path / "whole")
    made = small_grid.contents(tmp_path / "core/results")
    assert len(made) > 20 and made == small_grid.contents(tmp_path / "whole/results")


def test_the_core_ranks_a_table_and_removes_what_it_listed(alone: Path, tmp_path: Path) -> None:
    """With the one room that names data at URLs."""
    tree = Path(shutil.copytree(alone, tmp_path / "tree"))
    (tree / "workflow" / f"{PACKAGE.name}.py").unlink()
    shutil.copytree(PACKAGE / "remote", tree / "workflow" / PACKAGE.name / "remote")
    rng = np.random.default_rng(0)
    ids, marks = [f"t{i}" for i in range(200)], np.arange(200) % 2
    rows = [f"{name},{mark},a text number {name}" for name, mark in zip(ids, marks, strict=True)]
    (tmp_path / "texts.csv").write_text("\n".join(["id,bad,text", *rows]) + "\n")
    vectors = (rng.normal(size=(200, 8)) + 2 * marks[:, None]).astype(np.float32)
    table = pa.table({"id": ids, "vector": pa.array([*vectors], pa.list_(pa.float32(), 8))})
    pq.write_table(table, tmp_path / "vectors.parquet")
    ranked = ("--text", "text", "--id", "id", "--forget", "bad == 1")
    options = ("--embeddings", "vectors.parquet", "--selectors", "mamushi_lr", "--budgets", "0.1")
    run(tree, "-m", "mamushi", "rank", "texts.csv", *ranked, *options, cwd=tmp_path)
    (listed,) = tmp_path.glob("results/runs/*/*/seed0/removals/mamushi_lr/beta0.10.parquet")
    removed = {*pq.read_table(listed)["id"].to_pylist()}
    assert len(removed) == 10 and all(int(name[1:]) % 2 for name in removed)
    run(
        *(tree, "-m", "mamushi", "apply", listed),
        *("--data", "texts.csv", "--out", "left.csv"),
        cwd=tmp_path,
    )
    left = (tmp_path / "left.csv").read_text().splitlines()
    assert left == ["id,bad,text", *(row for row in rows if row.split(",")[0] not in removed)]
