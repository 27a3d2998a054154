"""A job of several processes: the first one is the command, and none outlives another."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.running import launch
from tests.support.stage_files import (
    EXECUTION,
    FILES,
    unlearn_words,
    unlearning,
    write_base,
    write_start,
)
from tests.support.workflow import ROOT, environment


def test_a_model_that_is_to_be_cut_has_as_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Files:
        model_card = Path("results/base/large/card.json")

    assert launch.process_count(True, Files()) == 1
    monkeypatch.setenv(launch.GPUS, json.dumps({"large": 4}))
    assert launch.process_count(True, Files()) == 4
    # A stage that reads the model's card, and computes on no GPU.
    assert launch.process_count(False, Files()) == 1
    Files.model_card = Path("results/base/small/card.json")
    assert launch.process_count(True, Files()) == launch.process_count(True, object()) == 1


def test_another_launcher_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    words = ["--examples=e", "--tokens=t", "--model-card=c", "--out=o", "--nll=n"]
    settings = '{"training": null, "precision": "fp32", "evaluation": {"max_length": 16}}'
    assert main(["evaluate", *words, "--settings", settings]) == 2
    said = capsys.readouterr().err
    assert "a launcher has started several" in said and "gpus_per_job" in said


def python(script: str, **options: object) -> "subprocess.Popen[str]":
    env = environment(PYTHONPATH=str(ROOT / "workflow"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([sys.executable, "-c", script], env=env, text=True, **pipes)


def test_the_first_process_ends_with_the_words_of_one_that_fails() -> None:
    waiting = python(
        "import time\n"
        "from mamushi.running import launch\n"
        "launch.GRACE = 0.1\n"
        "with launch.processes(2, ['stage', 'no-such-stage']):\n"
        "    time.sleep(60)\n"
    )
    said, _ = waiting.communicate(timeout=50)
    assert waiting.returncode == 2
    assert "no stage 'no-such-stage'" in said
    assert said.endswith("process 1 failed\n")


def test_a_process_ends_when_the_first_one_is_gone() -> None:
    other = python(
        "import time\nfrom mamushi.running import launch\nlaunch.watch()\ntime.sleep(60)\n"
    )
    assert other.stdin is not None
    other.stdin.close()
    assert other.wait(timeout=50) == 1


def unlearn(made: Path, out: Path, **variables: str) -> str:
    """SalUn by the command of its rule, from trained tensors; what it says."""
    words = unlearn_words(made, out, unlearning("salun"), tensors=out / "trained.safetensors")
    return run(made, *words, **variables)


def run(made: Path, *words: str, **variables: str) -> str:
    """The command with these words; what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "mamushi", *words],
        cwd=made,
        env=environment(PYTHONPATH=str(ROOT / "workflow"), OMP_NUM_THREADS="1", **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_two_processes_of_a_command_write_what_one_does(tmp_path: Path) -> None:
    """The model is opened on the meta device and read by rows, with trained tensors laid over it;
    texts are measured by turns, and what was trained is brought together."""
    made = tmp_path / "large"
    made.mkdir()
    write_start(made)
    unlearn(made, tmp_path / "one")
    unlearn(made, tmp_path / "two", **{launch.GPUS: json.dumps({"large": 2})})

    cards = [read_json(tmp_path / name / "card.json") for name in ("one", "two")]
    assert cards[0] == cards[1]
    one, two = (load_file(tmp_path / name / "trained.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    # Sums in another order may turn around two weights at the threshold of the mask.
    apart = [~np.isclose(one[name], two[name], rtol=1e-3, atol=2e-4) for name in one]
    assert sum(int(each.sum()) for each in apart) <= 2
    for name, table in (("perplexity", schemas.PERPLEXITY), ("log", schemas.UNLEARN_LOG)):
        found = [read_table(tmp_path / each / f"{name}.parquet", table) for each in ("one", "two")]
        column = "perplexity" if name == "perplexity" else "loss"
        np.testing.assert_allclose(*(t[column].to_numpy() for t in found), rtol=1e-3)
    assert not list((tmp_path / "two").glob("*.state"))


def test_two_processes_embed_and_measure_what_one_does(tmp_path: Path) -> None:
    made = tmp_path / "large"
    made.mkdir()
    write_base(made)
    read = [f"--{key}={made / name}" for key, name in FILES.items() if key != "trained"]
    read.append(f"--execution={json.dumps(EXECUTION)}")
    how = {"pooling": "mean", "skip_bos": True, "layer": -1, "max_length": 16, "precision": "fp32"}
    asked = {"membership": {"texts": 9, "max_length": 16}}
    stages: list[tuple[str, str, schemas.Table, dict[str, Any]]] = [
        ("embed", "out", schemas.EMBEDDINGS, {"embedding": how, "training": None}),
        (
            *("ask", "membership", schemas.LIKELIHOODS),
            {"model": {"training": None, "precision": "fp32"}, "questions": asked, "code": "c"},
        ),
    ]
    for stage, output, kind, settings in stages:
        found = []
        for count in (1, 2):
            words = [f"--{output}={made / f'{stage}{count}'}", f"--settings={json.dumps(settings)}"]
            run(made, stage, *read, *words, **{launch.GPUS: json.dumps({"large": count})})
            found.append(read_table(made / f"{stage}{count}", kind))
        one, two = ({name: t[name].to_pylist() for name in t.column_names} for t in found)
        assert one["id"] == two["id"]
        name = "embedding" if stage == "embed" else "nll"
        np.testing.assert_allclose(one[name], two[name], rtol=1e-2, atol=1e-2)
