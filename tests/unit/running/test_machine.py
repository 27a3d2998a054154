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


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({}, None),
        # Of the job that an interactive shell is in, but not of this one.
        ({"SLURM_JOB_GPUS": "2,3"}, None),
        ({"SLURM_JOB_GPUS": "2,3", "SLURM_JOB_ID": "1"}, "2,3"),
        *(({"CUDA_VISIBLE_DEVICES": hidden}, None) for hidden in ("", "-1", "NoDevFiles")),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, "0,1"),
    ],
)
def test_slurm_and_the_environment_say_which_gpus_a_job_holds(
    variables: dict[str, str], gpus: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert machine.scheduled() == gpus


def test_a_stage_stops_before_it_reads_or_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"--{name}={tmp_path / name}" for name in ("examples", "tokens")]
    for name in ("examples", "tokens"):
        (tmp_path / name).touch()
    how = {"pooling": "mean", "layer": -1, "max_length": 8, "precision": "fp32", "skip_bos": True}
    monkeypatch.setenv("MAMUSHI_GPU_LEASES", "off")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    write_json(card := tmp_path / "card.json", {"parameters": int(8e9)})
    words += [f"--model-card={card}", f"--out={tmp_path / 'out'}"]
    words.append(f"--settings={json.dumps({'embedding': how})}")
    assert main(["embed", *words]) == 2
    assert "this job holds a GPU (0)" in capsys.readouterr().err
    # It goes on to open the model, of which there is only a card.
    assert main(["embed", *words, '--execution={"device": "cpu"}']) == 1
    assert "source" in capsys.readouterr().err
