"""Commands in processes of a server that has imported the libraries."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mamushi_cluster import warm
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

PACKAGE = """
import os, sys, time
from pathlib import Path
Path("pid").write_text(str(os.getpid()))
print("json" in sys.modules, sys.argv[1:], os.environ["GIVEN"], os.getcwd(), flush=True)
if sys.argv[1] == "sleep":
    time.sleep(60)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setenv(warm.SOCKET, "")
    process = warm.start_server(["json"])
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0
    assert not Path(os.environ[warm.SOCKET]).parent.exists()


def command(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """``mamushi``, whose package is another one in the server's process."""
    (folder / "mamushi").mkdir(exist_ok=True)
    (folder / "mamushi" / "__init__.py").touch()
    (folder / "mamushi" / "__main__.py").write_text(PACKAGE)
    given = environment(PYTHONPATH=str(folder), GIVEN="given")
    client = f"import sys; sys.path.insert(0, {str(ROOT / 'workflow')!r})\n" + (
        "from mamushi_cluster import warm\nimport os\n"
        f"sys.exit(warm.run_in_server({list(words)!r}, os.environ[warm.SOCKET]))"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", client], cwd=folder, env=given, **pipes)


def test_words_folder_environment_and_status_are_the_commands(
    server: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    started = [command(tmp_path, status) for status in ("0", "7")]
    for process, status in zip(started, (0, 7), strict=True):
        said, _ = process.communicate(timeout=30)
        assert said == f"True ['{status}'] given {tmp_path}\n"
        assert process.returncode == status


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 137), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_job_ends_with_its_command(
    server: "subprocess.Popen[bytes]", tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """By a signal that is passed on, and by one that cannot be."""
    process = command(tmp_path, "sleep")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    job = Path("/proc") / (tmp_path / "pid").read_text()
    assert job.exists()
    process.send_signal(number)
    assert process.wait(20) == status
    until(lambda: not job.exists(), 20)
