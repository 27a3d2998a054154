"""``mamushi doctor``: a line for each thing that a run needs, and what would go wrong."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.commands import doctor
from mamushi.running import locks

NAMES = ["packages", "GPU", "SLURM", "disk", "locks"]


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """None on the machine, and no GPU, unless a test puts them there."""
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "answer", lambda *command: None)


def told(capsys: pytest.CaptureFixture[str], folder: Path, status: int) -> dict[str, str]:
    assert main(["doctor", str(folder)]) == status
    lines = capsys.readouterr().out.splitlines()
    return {line[6:18].strip(): line[:5].strip() + " " + line[19:] for line in lines}


def test_a_line_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, tmp_path, 0)
    assert [*said] == NAMES
    assert said["locks"] == "ok work"
    assert said["SLURM"].startswith("note not on this machine")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, tmp_path / "none", 1)
    for name in ("disk", "locks"):
        assert said[name].startswith("FAIL ") and "No such file" in said[name]


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    kind, said = doctor.packages()
    assert (kind, said.startswith("not installed: no-such-package;")) == (doctor.FAIL, True)


@pytest.mark.parametrize(
    ("built", "why"), [(None, "torch is built for the CPU"), ("12.8", "the driver is too old")]
)
def test_a_gpu_that_torch_does_not_see_or_compute_on(
    built: str | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def zeros(*shape: int, device: str) -> Any:
        raise RuntimeError(f"no kernel image on {device}\nmore")

    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(doctor, "answer", lambda *command: "name, memory\nH100, 80 GB, 570\n")
    kind, said = doctor.gpu()
    assert kind == doctor.FAIL and said.startswith("H100, 80 GB, 570: not seen") and why in said
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch, "zeros", zeros)
    told = "torch cannot compute on GPU 0: no kernel image on cuda:0"
    assert doctor.gpu() == (doctor.FAIL, told)


def refusing(number: int) -> Callable[[Path, str], None]:
    def refused(path: Path, stage: str) -> None:
        raise OSError(number, "no locks")

    return refused


@pytest.mark.parametrize(
    ("check", "owner", "name", "value", "kind"),
    [
        ("disk", shutil, "disk_usage", lambda path: SimpleNamespace(free=1e8), "FAIL"),
        ("disk", shutil, "disk_usage", lambda path: SimpleNamespace(free=5e9), "note"),
        ("disk", shutil, "disk_usage", lambda path: SimpleNamespace(free=1e12), "ok"),
        ("file_locks", locks, "attempt", refusing(errno.ENOLCK), "note"),
        ("file_locks", locks, "attempt", refusing(errno.EACCES), "FAIL"),
        ("slurm", doctor, "answer", lambda *command: None, "FAIL"),
        ("slurm", doctor, "answer", lambda *command: "gpu* gpu:h100:8\ncpu (null)\n", "ok"),
    ],
)
def test_what_a_run_lives_with_and_what_not(
    check: str,
    owner: Any,
    name: str,
    value: Any,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(owner, name, value)
    assert getattr(doctor, check)(*[tmp_path] * (check != "slurm"))[0] == kind
