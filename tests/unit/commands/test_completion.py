"""Completion: what a shell offers is what the parsers know."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mamushi import cli
from mamushi.running import stage


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    from mamushi.commands import completion

    return {name: made(completion.words()) for name, made in completion.SHELLS.items()}


def offered(script: str, *typed: str) -> set[str]:
    """What bash offers behind these words; the last may be the begin of one."""
    line = ["mamushi", *typed]
    ask = (
        f"{script}\nCOMP_WORDS=({' '.join(map(repr, line))})\nCOMP_CWORD={len(line) - 1}\n"
        '_mamushi\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    said = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    return set(said.stdout.split())


def test_bash_offers_commands_stages_and_options(scripts: dict[str, str]) -> None:
    bash = scripts["bash"]
    assert offered(bash, "") == {*cli.commands(), "stage"}
    assert offered(bash, "ver") == {"verify"}
    assert offered(bash, "stage", "") == {*stage.names()}
    assert {"--root", "--removal", "--sad"} <= offered(bash, "advise", "--removal", "0.5", "--")
    assert "--settings" in offered(bash, "stage", "remove", "--scores", "x y", "--s")
    assert offered(bash, "completion", "") >= {"bash", "fish", "zsh"}
    # Files are bash's own affair.
    assert offered(bash, "verify", "resul") == set()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_given_the_same_words(shell: str, scripts: dict[str, str]) -> None:
    script = scripts[shell]
    option = {"zsh": "--removal:", "fish": "-l removal "}[shell]
    assert option in script and "embed-layers" in script
    assert all(name in script for name in cli.commands())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_script(shell: str, scripts: dict[str, str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "script").write_text(scripts[shell], encoding="utf-8")
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)
