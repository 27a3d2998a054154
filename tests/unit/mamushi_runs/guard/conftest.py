"""SLURM's commands made up, answering at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi_runs.guard import squeue
from tests.support.slurm_commands import Commands, install


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setattr(squeue, "ATTEMPTS", 2)
    monkeypatch.setattr(squeue, "PAUSE", 0.01)
    return install(tmp_path / "bin", monkeypatch)
