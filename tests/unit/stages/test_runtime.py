"""What a selection costs, by the logs of the jobs that ranked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.cli import main
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
