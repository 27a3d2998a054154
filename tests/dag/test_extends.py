"""A configuration of one's own stands alone, and has the paper's beneath it when it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.dry_runs import Snakemake


def jobs(snakemake: Snakemake, folder: Path, **request: Any) -> dict[str, int]:
    counts: dict[str, int] = snakemake.look(folder, targets=["data", "studies"], **request)["all"]
    return {rule: counts.get(rule, 0) for rule in ("examples", "study_tables")}


def test_what_extends_the_paper_changes_some_keys(snakemake: Snakemake, tmp_path: Path) -> None:
    change = {"extends": "paper", "grid": {"seeds": [0]}, "studies": {"reverse": None}}
    assert jobs(snakemake, tmp_path, change=change) == {"examples": 2, "study_tables": 1}
    # Also as a folder's own file, over which another one is laid.
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(change), encoding="utf-8")
    over = {"studies": {"estimator": None}}
    assert jobs(snakemake, tmp_path, change=over) == {"examples": 2, "study_tables": 0}
