"""A job that is handed to a warm process is as it is without, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mamushi.running import warm
from tests.support.processes import until
from tests.support.rule_commands import NO_OPTIONS, around, command, servers
from tests.support.stage_files import unlearn_words, unlearning, write_start
from tests.support.unlearning import LOOP
from tests.support.workflow import ROOT, environment

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone has a pidfd")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an unlearning reads."""
    folder = tmp_path_factory.mktemp("made")
    write_start(folder)
    return folder


def words(made: Path, out: Path, epochs: int) -> list[str]:
    settings = unlearning(training=LOOP | {"epochs": epochs})
    return unlearn_words(made, out, settings, tensors=out / "trained.safetensors")


def test_the_jobs_of_a_run_share_one_server_and_write_what_they_write_alone(
    training: Path, tmp_path: Path
) -> None:
    for name in ("warm", "warm too", "cold"):
        (tmp_path / name).mkdir()
    two = [command(*words(training, tmp_path / name, 2)) for name in ("warm", "warm too")]
    for each in two:
        said, _ = each.communicate()
        assert each.returncode == 0, said
    assert len(servers(os.getpid())) == 1
    cold = command(*words(training, tmp_path / "cold", 2), env=around() | {warm.SWITCH: "off"})
    assert cold.communicate() and cold.returncode == 0
    for name in ("perplexity.parquet", "card.json", "trained.safetensors"):
        one, other, alone = ((tmp_path / each / name).read_bytes() for each in os.listdir(tmp_path))
        assert one == other == alone, name


def test_its_words_and_its_status_are_those_of_the_job() -> None:
    found = []
    for switch in ("on", "off"):
        job = command(*NO_OPTIONS, env=around() | {warm.SWITCH: switch})
        said, _ = job.communicate()
        found.append((said, job.returncode))
    assert found[0] == found[1]
    assert found[0][1] == 2 and "--model-card" in found[0][0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_signal_to_the_command_is_one_to_the_job(
    training: Path, tmp_path: Path, number: signal.Signals
) -> None:
    job = command(*words(training, tmp_path, 100_000))
    state = tmp_path / "card.json.state"
    until(state.exists)
    job.send_signal(number)
    said, _ = job.communicate()
    if number == signal.SIGKILL:
        assert job.returncode == -signal.SIGKILL
        # Nobody writes to it any more.
        until(lambda: not _holders(tmp_path))
    else:
        assert job.returncode == 128 + signal.SIGTERM
        assert "stopped by SIGTERM after step" in said
        assert not _holders(tmp_path)


def test_a_job_that_is_killed_kills_the_command(training: Path, tmp_path: Path) -> None:
    job = command(*words(training, tmp_path, 100_000), cwd=tmp_path)
    until((tmp_path / "card.json.state").exists)
    (working,) = _holders(tmp_path)
    os.kill(working, signal.SIGKILL)
    job.communicate()
    assert job.returncode == -signal.SIGKILL


def _holders(folder: Path) -> list[int]:
    """Processes that were given a file in this folder, or work there, and are no commands."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words, where = (each / "cmdline").read_bytes(), os.readlink(each / "cwd")
            files = [os.readlink(file) for file in (each / "fd").iterdir()]
        except OSError:
            continue
        inside = any(path.startswith(str(folder)) for path in (where, *files))
        if b"warm-server" in words and inside:
            found.append(int(each.name))
    return found


def test_a_server_ends_with_the_process_that_it_serves() -> None:
    script = """
        import os, subprocess, sys
        from tests.support.rule_commands import command, servers
        command(*%r).wait()
        print(*servers(os.getpid()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) % NO_OPTIONS],
        env=environment(PYTHONPATH=f"{ROOT}:{ROOT / 'workflow'}"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (server,) = map(int, done.stdout.split())
    until(lambda: not Path(f"/proc/{server}").exists(), 5)


def test_who_has_not_asked_for_it_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked() -> None:
        assert warm.run_in_server(NO_OPTIONS, start=True) is None

    monkeypatch.setattr(warm, "_start", lambda *_: pytest.fail("a server was started"))
    monkeypatch.delenv(warm.SWITCH, raising=False)
    unasked()
    monkeypatch.setenv(warm.SWITCH, "off")
    unasked()
    monkeypatch.setenv(warm.SWITCH, "on")
    # Of several processes of a job each is what the first has started; SLURM ends what a job leaves
    # behind.
    for name in (warm.SHARDS, "SLURM_JOB_ID"):
        with monkeypatch.context() as within:
            within.setenv(name, "2")
            unasked()
    # A stage that computes with no model is over before a server would be there.
    assert warm.run_in_server(NO_OPTIONS, start=False) is None


def test_only_ones_own_processes_are_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    address = b"\0mamushi-test-" + os.urandom(8).hex().encode()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        line = warm._connected(address)
        assert line is not None
        with line, listening.accept()[0] as other:
            assert warm.same_user(line) and warm.same_user(other)
            monkeypatch.setattr(warm.os, "getuid", lambda: 4711)
            assert not warm.same_user(other)
        assert warm._connected(address) is None


def test_a_server_is_for_those_alone_that_would_import_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {warm._address(1), warm._address(2)}
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
        found.add(warm._address(1))
    monkeypatch.setattr(sys, "executable", "/elsewhere/python")
    found.add(warm._address(1))
    assert len(found) == 5


def served(prelude: str) -> subprocess.CompletedProcess[str]:
    """A command's words and status where the server is started with this before it."""
    script = """
        import os, subprocess, sys
        from mamushi.running import warm
        from tests.support.rule_commands import command
        name, owner = warm._address(os.getpid())[1:].decode(), os.getpid()
        server = os.environ.pop("PRELUDE") + (
            f"\\nsys.argv[1:] = [warm.SERVER, {name!r}, '{owner}']"
            "\\nfrom mamushi.__main__ import main\\nmain()"
        )
        # It says by the end of its output that it can be connected to.
        with subprocess.Popen(
            [sys.executable, "-c", server], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        ) as process:
            process.stdout.read()
            job = command(*%r, env=dict(os.environ))
            print(job.communicate()[0])
            process.kill()
        sys.exit(job.returncode)
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) % NO_OPTIONS],
        env=around() | {"PYTHONPATH": f"{ROOT}:{ROOT / 'workflow'}", "PRELUDE": prelude},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_where_a_gpu_was_touched_before_the_fork_a_job_begins_anew() -> None:
    prelude = """
import os, sys, torch
from mamushi.running import warm
warm.LIBRARIES = ()
torch.cuda._is_in_bad_fork = lambda: True
anew = os.execv
def told(*given):
    print("anew", *given[1][1:], flush=True)
    anew(*given)
os.execv = told
"""
    done = served(prelude)
    first, *rest = done.stdout.splitlines()
    assert first == f"anew -m mamushi {' '.join(NO_OPTIONS)}"
    assert "--model-card" in "".join(rest) and done.returncode == 2


def test_importing_the_libraries_touches_no_gpu() -> None:
    script = """
        import importlib, torch
        def told(name):
            raise AssertionError(name)
        for name in ("is_available", "device_count", "init", "_lazy_init", "get_device_name"):
            assert hasattr(torch.cuda, name)
            setattr(torch.cuda, name, lambda *_, name=name: told(name))
        from mamushi.running import warm
        warm.load(warm.LIBRARIES)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment(PYTHONPATH=str(ROOT / "workflow")),
        check=True,
    )
