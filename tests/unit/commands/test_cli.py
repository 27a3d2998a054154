"""``mamushi COMMAND``: the commands for people by who uses them, and the stages under ``stage``."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mamushi import __version__, cli
from mamushi.running import stage

PEOPLE = {
    "start": {"init", "rank", "run"},
    "decide": {"advise", "show"},
    "act": set(),
    "check": {"check", "plan"},
}


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """The exit status of a command that ends in the parser, and what it said."""
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_the_help_lists_the_commands_by_who_uses_them(capsys: pytest.CaptureFixture[str]) -> None:
    status, said, _ = ended(capsys, "--help")
    assert status == 0
    blocks = {block.partition(":")[0]: block.splitlines()[1:] for block in said.split("\n\n")}
    found = {group: {line.split()[0] for line in blocks[group]} for group in cli.GROUPS}
    assert {group: names & found[group] for group, names in PEOPLE.items()} == PEOPLE
    assert sum(map(len, found.values())) == len(cli.commands())
    # Each with what it does, in one line.
    assert all(len(line.split()) > 3 for group in cli.GROUPS for line in blocks[group])


def test_the_stages_have_a_list_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    status, said, _ = ended(capsys, "stage", "--help")
    assert status == 0
    listed = {line.split()[0] for line in said.splitlines() if line.startswith("  ")}
    assert listed >= {*stage.stages()}


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, "--version")[:2] == (0, f"mamushi {__version__}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["advis"], "mamushi: error: no command 'advis'; did you mean 'advise'?"),
        (["finetun"], "mamushi: error: no command 'finetun'; did you mean 'finetune'?"),
        (["quux"], "mamushi: error: no command 'quux'; see mamushi --help"),
        ([], "mamushi: error: no COMMAND; see mamushi --help"),
        (["stage", "embd"], "mamushi stage: error: no stage 'embd'; did you mean 'embed'?"),
        (["__init__"], "mamushi: error: no command '__init__'; did you mean 'init'?"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = ended(capsys, *words)
    assert (status, err.splitlines()[-1]) == (2, said)


def test_a_stage_is_found_with_and_without_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    spellings = [ended(capsys, *words, "remove", "--help") for words in ([], ["stage"])]
    assert spellings[0] == spellings[1]
    assert spellings[0][1].startswith("usage: mamushi remove ")


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
