"""A job that holds a GPU and cannot use it stops, unless its model is tiny."""

import json
from pathlib import Path

import pytest
import torch

from mamushi.cli import main
from mamushi.io.files import write_json
from mamushi.running import machine


@pytest.fixture(autouse=True)
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", *machine.SCHEDULED):
        monkeypatch.delenv(name, raising=False)


def card(folder: Path, parameters: float) -> Path:
    path = folder / "card.json"
    write_json(path, {"parameters": int(parameters)})
    return path


def test_slurm_and_the_environment_say_which_gpus_a_job_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert machine.scheduled() is None
    # Of the job that an interactive shell is in, but not of this one.
    monkeypatch.setenv("SLURM_JOB_GPUS", "2,3")
    assert machine.scheduled() is None
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert machine.scheduled() == "2,3"
    monkeypatch.delenv("SLURM_JOB_GPUS")
    assert machine.scheduled() is None
    for hidden in ("", "-1", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert machine.scheduled() is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert machine.scheduled() == "0,1"


def test_a_stage_stops_before_it_reads_or_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("examples", "tokens")
    for name in files:
        (tmp_path / name).touch()
    words = [f"--{name}={tmp_path / name}" for name in files]
    settings = {
        "embedding": {
            "pooling": "mean",
            "layer": -1,
            "max_length": 8,
            "precision": "fp32",
            "skip_bos": True,
        }
    }
    monkeypatch.setenv("MAMUSHI_GPU_LEASES", "off")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    words += [f"--model-card={card(tmp_path, 8e9)}", f"--out={tmp_path / 'out'}"]
    words.append(f"--settings={json.dumps(settings)}")
    assert main(["embed", *words]) == 2
    assert "this job holds a GPU (0)" in capsys.readouterr().err
    # It goes on to open the model, of which there is only a card.
    assert main(["embed", *words, '--execution={"device": "cpu"}']) == 1
    assert "source" in capsys.readouterr().err
