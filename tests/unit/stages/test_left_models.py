"""What is left in models, as tables: from measurements of a small made-up grid."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import read_table, write_table
from mamushi.cli import main
from mamushi.configuration import arms
from mamushi.configuration.grid import cells
from mamushi.evaluation.audit_models import distance, margins
from tests.support.grid_files import write_perplexity

SEEDS = [0, 1, 2, 3]
GRID: dict[str, Any] = {
    "datasets": ["d"], "models": ["m"], "seeds": SEEDS, "budgets": [0.5], "selectors": ["vmf"],
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "grid": GRID,
    "deleted": {**GRID, "unlearners": ["salun"]},
    "starts": {"m": "beta0"},
}
HELD, RANKED = 120, 80
LIST = {"selector": "vmf", "beta": "0.50"}
ARMS = {
    "retraining": arms.retrained("vmf", 0.5),
    "salun": arms.unlearned("salun", "vmf", 0.5),
    "gold": "gold",
}
NLLS: dict[str, float] = {"retraining": -0.1, "salun": 1.0, "gold": 0.0}
"""What each kind of models adds to the NLL of a forget text, in nats."""


def write_answers(at: Callable[..., Path], rng: np.random.Generator) -> None:
    """Write what the models of a seed were asked, in the places that ``at`` names."""
    write_perplexity(at(paths.PERPLEXITY, arm="beta0"), np.exp(3.0), 20.0)
    for kind, (before, after) in {
        "gold": (4.0, 3.9), "retraining": (3.9, 3.8), "salun": (5.0, 3.9),
    }.items():  # fmt: skip
        noise = 0.01 * rng.normal()
        rows = [
            *[("relearn forget", 0, before, 3.0), ("relearn forget", 8, after + noise, 3.0)],
        ]
        names = schemas.RELAPSES.schema.names
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        write_table(at(paths.RELAPSE, arm=ARMS[kind]), schemas.RELAPSES, columns)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four seeds. Unlearning makes forget texts less likely than gold does, and those that it was
    given by three nats more; half of that comes back."""
    folder, rng = tmp_path_factory.mktemp("left") / "results", np.random.default_rng(0)
    ids = [f"h{i:03d}" for i in range(HELD)] + [f"r{i:03d}" for i in range(RANKED)]
    forget = np.array([i % 2 == 0 or i >= HELD for i in range(len(ids))])
    examples = {
        "id": ids,
        "text": ["w " * (i % 9 + 2) for i in range(len(ids))],
        "domain": np.where(forget, "forget", "retain"),
        "section": ["evaluation"] * HELD + ["inference"] * RANKED,
        "log_density_ratio": pa.nulls(len(ids), pa.float64()),
        "group": pa.nulls(len(ids), pa.string()),
        "label_topic": ["a" if i % 4 < 2 else "b" for i in range(len(ids))],
    }
    write_table(paths.under(folder, paths.EXAMPLES, dataset="d"), schemas.EXAMPLES, examples)
    tokens = rng.integers(4, 20, len(ids))
    tokens[7] = 0
    level = rng.normal(3, 0.3, len(ids)) * tokens
    order = rng.permutation(HELD)

    def write(path: Path, nll: np.ndarray, rows: np.ndarray) -> None:
        columns = {"id": [ids[i] for i in rows], "tokens": tokens[rows], "nll": nll[rows]}
        write_table(path, schemas.NLL, columns)

    for run in cells(GRID):

        def at(pattern: str, run: dict[str, Any] = run, **more: str) -> Path:
            return paths.under(folder, pattern, **run, **LIST, **more)

        removed = rng.choice(np.arange(HELD, len(ids)), 40, replace=False)
        listed = {
            "id": [ids[i] for i in removed],
            "score": np.zeros(40),
            "rank": np.arange(40) + 1,
            "copies": [[]] * 40,
        }
        write_table(at(paths.REMOVAL), schemas.REMOVALS, listed)
        both, held = rng.normal(0, 0.5, len(ids)), np.arange(HELD)
        for kind, more in {**NLLS, "base": 2.0, "contaminated": -0.5}.items():
            nll = level + both + rng.normal(0, 0.5, len(ids)) + more * forget
            if kind == "salun":
                nll[removed] += 3.0
            nll[tokens == 0] = 0.0
            if kind in ("gold", "base", "contaminated"):
                write(at(paths.NLL, arm=kind), nll, held)
            if kind == "retraining":
                write(at(paths.NLL, arm=ARMS[kind]), nll, held)
            every = np.concatenate([order, np.arange(HELD, len(ids))])
            if kind in ARMS:
                write(at(paths.RELAPSE_NLL, arm=ARMS[kind]), nll, every)
        write_answers(at, rng)
    return folder


@pytest.fixture(scope="module")
def finished(measured: Path) -> Path:
    assert make(measured) == 0
    return measured


@pytest.fixture
def root(measured: Path, tmp_path: Path) -> Path:
    """A copy of its own, without tables."""
    without = shutil.ignore_patterns("tables")
    return Path(shutil.copytree(measured, tmp_path / "results", ignore=without))


def make(root: Path, **changed: Any) -> int:
    words = ["--root", str(root), "--out-folder", str(root / "tables")]
    return main(["left-models", *words, "--settings", json.dumps(SETTINGS | changed)])


Find = Callable[..., dict[str, Any]]


def finder(root: Path, kind: schemas.Table) -> Find:
    rows = read_table(root / "tables" / f"{kind.name}.parquet", kind).to_pylist()

    def find(**where: Any) -> dict[str, Any]:
        (found,) = [row for row in rows if where.items() <= row.items()]
        return found

    return find


def fewer(seeds: int) -> dict[str, Any]:
    grid = {**GRID, "seeds": SEEDS[:seeds]}
    return {"grid": grid, "deleted": {**grid, "unlearners": ["salun"]}}


def test_unlearned_models_are_far_from_gold_and_retrained_ones_near(finished: Path) -> None:
    find = finder(finished, schemas.KLOM)
    far, near = (find(source=name, domain="forget") for name in ("salun", "retraining"))
    assert (far["selector"], far["beta"], far["texts"], far["seeds"]) == ("vmf", 0.5, 60, 4)
    assert far["excess_low"] > 0 and near["excess"] < far["excess"] / 2
    aside = find(source="salun", domain="retain")
    assert aside["excess_low"] < 0 < aside["excess_high"]
    assert aside["texts"] == 59  # one has no token to predict

    # The same from the files.
    held = {}
    for name in ("salun", "gold"):
        files = [
            paths.under(finished, paths.RELAPSE_NLL, **run, arm=ARMS[name]) for run in cells(GRID)
        ]
        tables = [read_table(path, schemas.NLL).to_pandas().set_index("id") for path in files]
        wanted = [f"h{i:03d}" for i in range(0, HELD, 2)]
        held[name] = np.array([t.loc[wanted, "nll"] for t in tables])
        tokens = tables[0].loc[wanted, "tokens"].to_numpy(float)
    expected = distance(*(margins(held[name], tokens) for name in ("salun", "gold")))
    assert far["excess"] == expected["excess"]


def test_what_few_seeds_cannot_say_is_absent_with_a_reason(root: Path) -> None:
    assert make(root, **fewer(1)) == 0
    for kind, numbers in (
        (schemas.KLOM, ["excess", "p"]),
        (schemas.RELAPSE, ["excess_low", "seeds_needed_low"]),
    ):
        for row in read_table(root / "tables" / f"{kind.name}.parquet", kind).to_pylist():
            assert all(row[number] is None for number in numbers) and row["why"], kind.name


def test_what_comes_back_is_told_against_gold(finished: Path) -> None:
    find = finder(finished, schemas.RELAPSE)
    row = find(source="salun", treatment="relearn forget")
    assert (row["amount"], row["seeds"], row["why"]) == (8, 4, None)
    assert row["raised"] == pytest.approx(2.0)
    assert row["regained"] == pytest.approx(1.1, abs=0.02)
    assert row["gold_regained"] == pytest.approx(0.1, abs=0.02)
    assert 0.9 < row["excess_low"] < row["excess"] < row["excess_high"]
    assert row["excess"] == pytest.approx(row["regained"] - row["gold_regained"])


def test_utility_stands_side_by_side(finished: Path) -> None:
    find = finder(finished, schemas.UTILITY)
    sources = ["base", "contaminated", "gold", "retraining", "salun"]
    for source in sources:
        row = find(source=source, subgroup="label_topic", value="b")
        assert (row["texts"], row["seeds"]) == (29, 4)
        assert row["ppl_low"] < row["ppl"] < row["ppl_high"]
    ids = [f"h{i:03d}" for i in range(1, HELD, 2)]
    means = []
    for run in cells(GRID):
        path = paths.under(finished, paths.NLL, **run, arm="base")
        table = read_table(path, schemas.NLL).to_pandas().set_index("id").loc[ids]
        means.append(table["nll"].sum() / table["tokens"].sum())
    row = find(source="base", subgroup="all")
    assert row["ppl"] == pytest.approx(np.exp(np.mean(means)))
