"""``mamushi`` that is interrupted before it has begun."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("over", ["raise KeyboardInterrupt", "int('x')"])
def test_an_interrupt_within_an_import_leaves_no_traceback(over: str) -> None:
    """The class that is made as it comes may end in an error of its own."""
    program = (
        "import runpy\nfrom mamushi.running import machine\n"
        "def hit():\n"
        f"    try:\n        {over}\n"
        "    except BaseException as error:\n        raise RuntimeError('name') from error\n"
        "machine.limit_threads = hit\n"
        "runpy.run_module('mamushi', run_name='__main__')"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    is_interrupt = (done.returncode, done.stderr) == (130, "\nmamushi: interrupted\n")
    assert is_interrupt == ("KeyboardInterrupt" in over), done.stderr
