"""Commands of tests in processes that have imported the libraries already: see ``server``."""

import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
SITE = Path(__file__).with_name("site")
SHARED = "MAMUSHI_TESTS_SERVER"  # the socket of one that several test processes share


def environment(path: str | None) -> dict[str, str]:
    """Variables with which commands of the package, and Snakemake, run in warm processes.

    ``path`` is what PYTHONPATH would be. ``MAMUSHI_TESTS_COLD``, if set, lets every command import
    what it needs by itself, as it does for a user.
    """
    if os.environ.get("MAMUSHI_TESTS_COLD"):
        return {}
    return {
        "MAMUSHI_TESTS_WARM": os.environ.get(SHARED) or server(),
        "MAMUSHI_WARM": "off",
        "PYTHONPATH": os.pathsep.join([str(SITE), *([path] if path else [])]),
    }


@cache
def server() -> str:
    """The socket of this process's server, which ends with this process."""
    address = str(Path(tempfile.mkdtemp(prefix="mamushi-warm-")) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm.server", address],
        cwd=ROOT,
        # Libraries read these when they are imported; a plug-in of Snakemake's asks SLURM then.
        env={**os.environ, "OMP_NUM_THREADS": "1", "SLURM_CONF": os.devnull},
        stdin=subprocess.PIPE,
        text=True,
    )
    # Who connects while it imports waits.
    while not Path(address).exists():
        assert process.poll() is None, "the server of warm processes did not start"
        time.sleep(0.01)
    # Its standard input stays open for as long as somebody holds the process.
    _servers.append(process)
    return address


_servers: list[subprocess.Popen[str]] = []
