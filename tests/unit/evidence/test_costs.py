"""What a selection costs, by the logs of the jobs that ranked."""

from pathlib import Path
from typing import Any

import pytest

from mamushi.evidence.tables import cost_rows
from mamushi.io import paths


def test_run_times_are_those_of_the_logs(tmp_path: Path) -> None:
    """What a selector derives from counts with it."""
    cell: dict[str, Any] = {"dataset": "d", "model": "m", "seed": 1}
    took = {"random": "0.50 s, 0.25 s", "mamushi": "6.41 s, 5.98 s", "turned": "1.00 s, 1.00 s"}
    for name in (*took, "kept"):
        end = f"{name}: ranked in {took[name]} of CPU" if name in took else "made already"
        log = paths.under(tmp_path, paths.SCORE_LOG, **cell, selector=name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"5/5 folds, 100%\n{end}\nmamushi score: took 60.00 s, 60.00 s of CPU\n")
    chains = {"random": ["random"], "turned": ["turned", "mamushi"], "kept": ["kept", "mamushi"]}
    sizes = {"n_forget": 40, "n_retain": 80}
    described = [{**cell, "selector": name, **sizes, "auc": 0.5} for name in (*took, "kept")]
    rows = {row["selector"]: row for row in cost_rows(described, chains, tmp_path)}
    assert rows.keys() == chains.keys()
    took_alone = {"wall_seconds": 0.5, "cpu_seconds": 0.25}
    assert rows["random"] == {**cell, "selector": "random", **sizes, **took_alone}
    sums = [rows["turned"][name] for name in ("wall_seconds", "cpu_seconds")]
    assert sums == pytest.approx([7.41, 6.98])
    assert rows["kept"]["wall_seconds"] is rows["kept"]["cpu_seconds"] is None
