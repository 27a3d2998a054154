"""A job that holds a GPU and cannot use it stops, unless its model is tiny."""

import json
from pathlib import Path

import pytest
import torch

from mamushi.cli import main
from mamushi.io.files import write_json


@pytest.fixture(autouse=True)
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


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
    assert "this job holds GPU 0, which PyTorch" in capsys.readouterr().err
    # It goes on to open the model, of which there is only a card.
    assert main(["embed", *words, '--execution={"device": "cpu"}']) == 1
    assert "source" in capsys.readouterr().err
