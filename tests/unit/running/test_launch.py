"""A job of several processes: the first one is the command, and none outlives another."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.running import launch
from mamushi_extras.left.schemas import LIKELIHOODS
from tests.support.processes import until
from tests.support.stage_files import (
    EXECUTION,
    FILES,
    unlearn_words,
    unlearning,
    write_base,
    write_start,
)
from tests.support.workflow import ROOT, environment, output_of, warmed

RUNS = "import sys; from mamushi.running import launch; sys.exit(launch.run(2, [], 'one'))"
ONE = """
import os, sys, time
print(os.getpid(), flush=True)
if "FAILS" in os.environ and os.environ["RANK"] == "1":
    sys.exit(3)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "status"), [(None, 1), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_processes_end_with_one_that_fails_and_with_the_command(
    number: signal.Signals | None, status: int, tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text(ONE)
    packages = f"{ROOT / 'workflow'}:{tmp_path}"
    command = subprocess.Popen(
        [sys.executable, "-c", RUNS],
        env=environment(PYTHONPATH=packages, FAILS=None if number else "1"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    pids = [command.stdout.readline().strip() for _ in range(2)]
    if number:
        command.send_signal(number)
    assert command.wait(50) == status
    # One that was ended before it said its number has none.
    until(lambda: not any(pid and Path("/proc", pid).exists() for pid in pids), 50)


def run(made: Path, *words: str, **variables: str) -> None:
    """The command with these words."""
    env = warmed(PYTHONPATH=str(ROOT / "workflow"), **variables)
    output_of(sys.executable, "-m", "mamushi", *words, cwd=made, env=env)


@pytest.mark.slow
def test_two_processes_of_a_command_write_what_one_does(tmp_path: Path) -> None:
    """The model is opened on the meta device and read by rows, with trained tensors laid over it;
    texts are measured by turns, and what was trained is brought together."""
    made = tmp_path / "large"
    made.mkdir()
    write_start(made)
    made_by = ("one", "two")
    for count, name in enumerate(made_by, 1):
        words = unlearn_words(made, tmp_path / name, unlearning("salun"))
        run(made, *words, **{launch.GPUS: json.dumps({"large": count})})
    cards = [read_json(tmp_path / name / "card.json") for name in made_by]
    assert cards[0] == cards[1]
    one, two = (load_file(tmp_path / name / "trained.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    # Sums in another order may turn around two weights at the threshold of the mask.
    apart = [~np.isclose(one[name], two[name], rtol=1e-3, atol=2e-4) for name in one]
    assert sum(int(each.sum()) for each in apart) <= 2
    logs = [read_table(tmp_path / name / "log.parquet", schemas.UNLEARN_LOG) for name in made_by]
    np.testing.assert_allclose(logs[0]["loss"], logs[1]["loss"], rtol=1e-3)
    assert not list((tmp_path / "two").glob("*.state"))


@pytest.mark.slow
def test_two_processes_embed_and_measure_what_one_does(tmp_path: Path) -> None:
    made = tmp_path / "large"
    made.mkdir()
    write_base(made)
    read = [f"--{key}={made / name}" for key, name in FILES.items() if key != "trained"]
    read.append(f"--execution={json.dumps(EXECUTION)}")
    how = {"pooling": "mean", "skip_bos": True, "layer": -1, "max_length": 16, "precision": "fp32"}
    membership = {"precision": "fp32", "texts": 9, "max_length": 16}
    for stage, kind, name, settings in (
        ("embed", schemas.EMBEDDINGS, "embedding", {"embedding": how}),
        ("membership", LIKELIHOODS, "nll", membership),
    ):
        found = []
        for count in (1, 2):
            words = [f"--out={made / f'{stage}{count}'}", f"--settings={json.dumps(settings)}"]
            run(made, stage, *read, *words, **{launch.GPUS: json.dumps({"large": count})})
            found.append(read_table(made / f"{stage}{count}", kind))
        one, two = ({name: t[name].to_pylist() for name in t.column_names} for t in found)
        assert one["id"] == two["id"]
        np.testing.assert_allclose(one[name], two[name], rtol=1e-2, atol=1e-2)
