"""A job that is killed or asked to end, at the worst moments, and goes on to the same bits."""

import signal
import time
from pathlib import Path

import pytest

from mamushi.io.files import trained_metadata
from mamushi.running.interruption import Stopped
from tests.support.made import OUTPUTS, RETRAINED, WHOLE, Made, sending, steps_in
from tests.support.processes import in_two_processes
from tests.support.small_grid import RUN

pytestmark = pytest.mark.slow

LOOPS = {"retrain": RETRAINED, "unlearn_whole": WHOLE}
"""Rules with a loop that saves, and the card beside which the state lies."""


def step_of(state: Path) -> int:
    return int(trained_metadata(state)["log"]["step"][-1])


@pytest.mark.parametrize(
    ("rule", "name"),
    [("unlearn_whole", "SIGTERM"), ("retrain", "SIGTERM"), ("retrain", "SIGINT")],
)
def test_asked_to_end_a_loop_saves_and_loses_no_step(
    made: Made, tmp_path: Path, rule: str, name: str
) -> None:
    number = signal.Signals[name]
    run = made.copy(tmp_path / "run", *OUTPUTS[rule])
    state = run.folder / f"{LOOPS[rule]}.state"
    # Twice, as where a terminal and the main process of a run both send one.
    assert run.start(rule, sending(step7=[number, number])).wait() == 128 + number
    total = int(run.said().rpartition("after step 7 of ")[2].partition(";")[0])
    (told,) = [line for line in run.said().splitlines() if line.startswith("mamushi")]
    assert told == (
        f"mamushi {made.commands[rule][0]}: stopped by {name} after step 7 of {total}; "
        "the same command goes on from there"
    )
    assert "Traceback" not in run.said()
    assert step_of(state) == 7
    assert not any((run.folder / path).exists() for path in OUTPUTS[rule])
    assert run.start(rule, sending()).wait() == 0, run.said()
    assert steps_in(run.said()) == total - 7
    assert run.differs() == []
    assert not state.exists()


@pytest.mark.parametrize("rule", ["embed", "retrain"])
def test_outside_a_loop_a_process_ends_at_once(made: Made, tmp_path: Path, rule: str) -> None:
    """While it imports, opens the model, or computes what has no state."""
    outputs = OUTPUTS.get(rule, [f"{RUN}/embeddings.parquet"])
    run = made.copy(tmp_path / "run", *outputs)
    for seconds in (0.3, 1.5):
        process = run.start(rule, cold=True)
        time.sleep(seconds)
        began = time.monotonic()
        process.terminate()
        assert process.wait() == -signal.SIGTERM
        assert time.monotonic() - began < 1.5
    assert {f"results/{name}" for name in run.differs()} == {*outputs}


CUT = """
import os, signal
from mamushi.lm import storage
whole, count = storage.save_file, 0
def cut(tensors, part, metadata):
    global count
    count += 1
    whole(tensors, part, metadata=metadata)
    if count == 9:
        SIGNAL
storage.save_file = cut
"""


@pytest.mark.parametrize("rule", LOOPS)
def test_killed_in_the_middle_of_a_checkpoint_it_goes_on_from_the_one_before(
    made: Made, tmp_path: Path, rule: str
) -> None:
    run = made.copy(tmp_path / "run", *OUTPUTS[rule])
    state = run.folder / f"{LOOPS[rule]}.state"
    kill = "os.truncate(part, os.path.getsize(part) // 2); os.kill(os.getpid(), signal.SIGKILL)"
    process = run.start(rule, CUT.replace("SIGNAL", kill), cold=True, checkpoint_seconds=0)
    assert process.wait() == -signal.SIGKILL
    (part,) = state.parent.glob("*.part")
    assert step_of(state) == 8
    assert part.stat().st_size < state.stat().st_size
    assert run.start(rule, sending()).wait() == 0, run.said()
    assert run.differs() == []
    assert [*state.parent.glob(".*.part")] == []
    # Of a retrained model it stays until that is measured.
    assert not state.exists()


SECOND_IS_TOLD = """
import os, signal, sys
from pathlib import Path
from mamushi.running.interruption import Stopped
from mamushi.lm import training
from tests.support.models import model, token_set
from tests.support.training import train

gradient, rank, count = training.gradient, int(os.environ["RANK"]), 0
def counted(*args):
    global count
    count += 1
    if rank == 1 and count == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return gradient(*args)
training.gradient = counted
state = Path(sys.argv[1], "state")
try:
    train(model("llama"), token_set(), state, total=25, checkpoint_seconds=600)
except Stopped as end:
    Path(sys.argv[1], str(rank)).write_text(str(end))
"""


def test_two_processes_stop_at_the_same_step(tmp_path: Path) -> None:
    in_two_processes(tmp_path, SECOND_IS_TOLD, tmp_path)
    said = {(tmp_path / rank).read_text() for rank in "01"}
    assert said == {str(Stopped(signal.SIGTERM, " after step 10 of 25"))}
    assert step_of(tmp_path / "state") == 10
