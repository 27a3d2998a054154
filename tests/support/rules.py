"""The workflow's rules as Snakemake reads them."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake


@cache
def rules() -> dict[str, dict[str, Any]]:
    """What each rule with an output is: its ``shell`` command, the names of its ``inputs`` and
    ``outputs``, whether it asks for a ``gpu`` and is ``local``, and its ``retries``."""
    with tempfile.TemporaryDirectory() as folder, Snakemake() as snakemake:
        contract_grid.make(Path(folder))
        found: dict[str, dict[str, Any]] = snakemake.look(Path(folder), targets=["data"])["rules"]
    return found


def gpu_rules() -> set[str]:
    """Rules that ask for a GPU."""
    return {name for name, rule in rules().items() if rule["gpu"]}
