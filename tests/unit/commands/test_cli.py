"""``mamushi COMMAND``: the commands for people, and the stages."""

import subprocess
import sys

import pytest

from mamushi import cli
from mamushi.running import stage


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """The exit status of a command that ends in the parser, and what it said."""
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_the_help_lists_the_commands_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    status, said, _ = ended(capsys, "--help")
    listed = dict(line.split(maxsplit=1) for line in said.splitlines() if line.startswith("  "))
    assert status == 0 and {"init", "rank", "show", "apply", "check"} <= {*cli.commands()}
    assert all(len(listed[name].split()) > 2 for name in cli.commands())
    assert all(name in said for name in stage.stages())


@pytest.mark.parametrize("over", ["raise KeyboardInterrupt", "int('x')"])
def test_an_interrupt_within_an_import_leaves_no_traceback(over: str) -> None:
    """The class that is made as it comes may end in an error of its own."""
    program = (
        "import runpy\nfrom mamushi.running import machine\n"
        "def hit():\n"
        f"    try:\n        {over}\n"
        "    except BaseException as error:\n        raise RuntimeError('name') from error\n"
        "machine.one_for_arithmetic = hit\n"
        "runpy.run_module('mamushi', run_name='__main__')"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    is_interrupt = (done.returncode, done.stderr) == (130, "\nmamushi: interrupted\n")
    assert is_interrupt == ("KeyboardInterrupt" in over), done.stderr


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_prints_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--json" in ended(capsys, name, "--help")[1]
