"""One job per GPU: who gets which, who waits, who sees none."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from mamushi.errors import UserError
from mamushi.running.leases import SWITCH, VISIBLE, leased, visible

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Outside of SLURM, without GPUs, with leases of its own."""
    for name in ("SLURM_JOB_ID", "WORLD_SIZE", "RANK", VISIBLE):
        # Set first, so that what is put back in the end is what was there before.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv(SWITCH, str(tmp_path / "leases"))
    lists(monkeypatch, 0)
    return tmp_path


def lists(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    """Let the driver's library tell of so many GPUs; of none, it cannot be opened."""

    def start() -> None:
        if not gpus:
            raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", start)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: gpus)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["0", "1"]),
        ("1,0", ["1", "0"]),
        ("GPU-2222", ["GPU-2222"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,1", ["0"]),
        ("MIG-0af2,MIG-GPU-5f/1/0", ["MIG-0af2", "MIG-GPU-5f/1/0"]),
    ],
)
def test_names_of_gpus(
    monkeypatch: pytest.MonkeyPatch, given: str | None, expected: list[str]
) -> None:
    lists(monkeypatch, 2)
    if given is not None:
        monkeypatch.setenv(VISIBLE, given)
    assert visible() == expected


def test_a_stage_sees_its_gpu_alone_and_others_none(monkeypatch: pytest.MonkeyPatch) -> None:
    lists(monkeypatch, 2)
    with leased("embed", True) as first:
        assert first == "0" == os.environ[VISIBLE]
        monkeypatch.delenv(VISIBLE)
        with leased("embed", True) as second:
            assert second == "1" == os.environ[VISIBLE]
        with leased("score", False):
            assert os.environ[VISIBLE] == ""
        monkeypatch.setenv(VISIBLE, first)
    assert VISIBLE not in os.environ


@pytest.mark.parametrize(("name", "value"), [("SLURM_JOB_ID", "12"), (SWITCH, "off")])
def test_where_others_hand_out_the_gpus_nothing_changes(
    machine: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    lists(monkeypatch, 2)
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.setenv(name, value)
    for gpu in (True, False):
        with leased("embed", gpu) as found:
            assert found is None
            assert os.environ[VISIBLE] == "0,1"


def test_the_folder_of_leases_is_the_user_s_alone(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "0")
    with leased("embed", True):
        assert (machine / "leases").stat().st_mode & 0o777 == 0o700
    for mode in (0o770, 0o707):
        (machine / "leases").chmod(mode)
        with pytest.raises(UserError, match="no folder of yours that you alone"):
            leased("embed", True).__enter__()
    (machine / "leases").chmod(0o700)
    (machine / "elsewhere").symlink_to(machine / "leases")
    monkeypatch.setenv(SWITCH, str(machine / "elsewhere"))
    with pytest.raises(UserError, match="no folder of yours"):
        leased("embed", True).__enter__()
    # Nor does a link inside lead to a file of somebody else.
    monkeypatch.setenv(SWITCH, str(machine / "leases"))
    (machine / "leases" / "0").unlink()
    (machine / "leases" / "0").symlink_to(machine / "victim")
    with pytest.raises(OSError):
        leased("embed", True).__enter__()
    assert not (machine / "victim").exists()


JOB = """
import os, sys, time
from mamushi.running.leases import leased
with leased("embed", True) as name:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == name
    print("begin", name, time.monotonic(), flush=True)
    time.sleep(float(sys.argv[1]))
    print("end", name, time.monotonic(), flush=True)
"""


def job(machine: Path, seconds: float, gpus: str = "0,1") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(seconds)],
        env={
            "PYTHONPATH": str(ROOT / "workflow"),
            SWITCH: str(machine / "leases"),
            VISIBLE: gpus,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("gpus", "at_once"), [("0,1", 2), ("0", 1)])
def test_four_jobs_never_two_on_one_gpu(machine: Path, gpus: str, at_once: int) -> None:
    jobs = [job(machine, 1.0, gpus) for _ in range(4)]
    said = [one.communicate() for one in jobs]
    assert [one.returncode for one in jobs] == [0] * 4
    spans = []
    for out, _ in said:
        (_, name, begin), (_, _, end) = (line.split() for line in out.splitlines())
        spans.append((name, float(begin), float(end)))
    assert {name for name, _, _ in spans} == set(gpus.split(","))
    events = sorted([(begin, 1) for _, begin, _ in spans] + [(end, -1) for _, _, end in spans])
    busy = [sum(change for _, change in events[: at + 1]) for at in range(len(events))]
    assert max(busy) == at_once
    for name in gpus.split(","):
        mine = sorted((begin, end) for gpu, begin, end in spans if gpu == name)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(mine))
    waited = [error for _, error in said if "waiting" in error]
    assert len(waited) == 4 - at_once
    assert all(f"one of {at_once} GPUs, leased by" in error for error in waited)


def test_a_job_that_needs_two_gpus_has_both_or_waits_for_both(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "0,1,2")
    with leased("embed", True, 2) as pair:
        assert pair == os.environ[VISIBLE] == "0,1"
        monkeypatch.setenv(VISIBLE, "0,1,2")
        with leased("embed", True) as single:
            assert single == "2"
    monkeypatch.setenv(VISIBLE, "0,1,2")
    with (
        pytest.raises(UserError, match="cut over 4 GPUs, and there are 3 here"),
        leased("e", True, 4),
    ):
        pass
