"""What a selection costs, by the logs of the jobs that ranked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.evidence.tables import RUNTIMES, runtime_rows
from mamushi.io import schemas
from mamushi.io.tables import read_table
from tests.support.score_files import domains, write_scores

N = 120


def test_run_times_are_those_of_the_logs(tmp_path: Path) -> None:
    """What a selector derives from counts with it."""
    texts = [f"t{i:03d}" for i in range(N)], domains(np.arange(N) % 3 == 0)
    took = {"random": "0.50 s, 0.25 s", "mamushi": "6.41 s, 5.98 s", "turned": "1.00 s, 1.00 s"}
    for name in (*took, "kept"):
        write_scores(tmp_path / f"{name}.parquet", *texts, np.arange(N))
        end = f"{name}: ranked in {took[name]} of CPU" if name in took else "made already"
        last = "mamushi score: took 60.00 s, 60.00 s of CPU"
        (tmp_path / f"{name}.log").write_text(f"5/5 folds, 100%\n{end}\n{last}\n")
    names = ["random", "mamushi", "turned", "kept"]
    parts = {"random": ["random"], "turned": ["turned", "mamushi"], "kept": ["kept", "mamushi"]}
    settings = {"dataset": "d", "model": "m", "seed": 1, "chains": parts, "scored": names}
    options = ["--scores", *(str(tmp_path / f"{name}.parquet") for name in names)]
    options += ["--logs", *(str(tmp_path / f"{name}.log") for name in names)]
    out = tmp_path / "runtime.parquet"
    assert main(["runtime", *options, f"--out={out}", f"--settings={json.dumps(settings)}"]) == 0
    rows = {row["selector"]: row for row in read_table(out, schemas.RUNTIME).to_pylist()}
    assert rows.keys() == parts.keys()
    assert rows["random"] == {
        **{"dataset": "d", "model": "m", "seed": 1, "selector": "random"},
        **{"n_forget": 40, "n_retain": 80, "wall_seconds": 0.5, "cpu_seconds": 0.25},
    }
    sums = [rows["turned"][name] for name in ("wall_seconds", "cpu_seconds")]
    assert sums == pytest.approx([7.41, 6.98])
    assert rows["kept"]["wall_seconds"] is rows["kept"]["cpu_seconds"] is None


def test_the_summary_has_means_deviations_and_the_papers_numbers_where_they_belong() -> None:
    cells = [("jigsaw", "gemma-2-2b"), ("jigsaw", "qwen-2.5-7b")]
    rows: list[dict[str, Any]] = [
        {**dict(zip(("dataset", "model"), cell, strict=True)), "seed": seed, "selector": name,
         "n_forget": 8, "n_retain": 70, "wall_seconds": seconds, "cpu_seconds": 2 * seconds}
        for cell in cells for name in ("mamushi", "stack")
        for seed, seconds in enumerate([1.0, 2.0, 4.5])
    ]  # fmt: skip
    rows[1] |= {"wall_seconds": None, "cpu_seconds": None}
    first, *others = runtime_rows(rows)
    table = pa.Table.from_pylist([first, *others], schema=schemas.RUNTIME_SUMMARY.schema)
    assert table.to_pylist() == [first, *others]
    # Of the second seed nothing is known.
    assert first["seeds"] == 2
    assert (first["wall_seconds_mean"], first["cpu_seconds_mean"]) == (2.75, 5.5)
    assert first["wall_seconds_sd"] == pytest.approx(np.std([1, 4.5], ddof=1))
    assert (first["paper_mean"], first["paper_sd"]) == (47.1857, 0.0172)
    assert {row["paper_mean"] for row in others} == {None}
    (single,) = runtime_rows(rows[:1])
    assert (single["wall_seconds_mean"], single["wall_seconds_sd"]) == (1.0, None)
    assert RUNTIMES.keys() == {
        *("random", "l2_norm", "cos_mu2", "coreset", "lr_cos", "vmf", "mamushi", "kcenter")
    }
