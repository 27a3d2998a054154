"""What the rules' commands find in their environment."""

import os
from pathlib import Path

import pytest

from mamushi_runs import environment


def test_jobs_share_what_they_compile_in_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {"PATH": ""})
    environment.give("packages", "{}", "{}", "{}")
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "results/cache/compiled")
    monkeypatch.setitem(os.environ, "TORCHINDUCTOR_CACHE_DIR", "/scratch/own")
    environment.give("packages", "{}", "{}", "{}")
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/scratch/own"
