"""``mamushi COMMAND``: the commands for people, and the stages."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mamushi import __version__, cli
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


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, "--version")[:2] == (0, f"mamushi {__version__}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["advis"], "mamushi: error: no command 'advis'; did you mean 'advise'?"),
        (["finetun"], "mamushi: error: no command 'finetun'; did you mean 'finetune'?"),
        (["quux"], "mamushi: error: no command 'quux'; see mamushi --help"),
        ([], "mamushi: error: the following arguments are required: COMMAND; see mamushi --help"),
        (["__init__"], "mamushi: error: no command '__init__'; did you mean 'init'?"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = ended(capsys, *words)
    assert (status, err.splitlines()[-1]) == (2, said)


def test_a_name_that_both_have_is_the_stage_s_where_settings_are_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules call `python -m mamushi unlearn ... --settings`; people type `mamushi unlearn`."""
    for words in (["--settings", "{}"], ["--settings={}"]):
        given = ended(capsys, "unlearn", *words)
        assert "the following arguments are required: " in given[2] and "--model-card" in given[2]
    told = ended(capsys, "unlearn", "--help")
    assert "--settings" not in told[1]


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (3, 3)])
def test_what_a_command_returns_is_its_exit_code(
    returned: int | None, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("mamushi_extras.audit.commands.audit")
    module.__dict__.update(arguments=lambda parser: None, run=lambda args: returned)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert cli.main(["audit"]) == status
