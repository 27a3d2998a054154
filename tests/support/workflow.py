"""Run this repository's workflow as its user does: with the `snakemake` command, in some folder."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support import warm

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
NO_RESULTS = frozenset({"logs", "claims", "cache", "digests"})
"""Folders of results/ with what says how a run went, or what saves time, and not what came out."""


def command(*args: str | Path, directory: Path, config: Mapping[str, Any] | None) -> list[str]:
    """The command line that runs the targets and options ``args`` in ``directory``.

    ``config`` is laid over the repository's config.yaml unless it says ``extends: null``; None
    leaves that as it is. The profile profiles/default applies, because Snakemake finds it beside
    the Snakefile.
    """
    # What comes later counts.
    line = [SNAKEMAKE, "--cores", "1", *args]
    line += ["--snakefile", ROOT / "Snakefile", "--directory", directory]
    if config is not None:
        directory.mkdir(parents=True, exist_ok=True)
        changes = directory / "changes.yaml"
        # A folder's own config.yaml is laid under it without a word.
        extends = {} if (directory / "config.yaml").is_file() else {"extends": "paper"}
        changes.write_text(yaml.safe_dump(extends | dict(config)), encoding="utf-8")
        line += ["--configfile", changes]
    return [str(word) for word in line]


def environment(**changes: str | None) -> dict[str, str]:
    """One thread, no paths of raw files from outside, and ``changes``; None unsets a variable."""
    wanted = {"OMP_NUM_THREADS": "1", "MAMUSHI_JIGSAW": None, "MAMUSHI_NEWSGROUPS": None, **changes}
    kept = {key: value for key, value in os.environ.items() if key not in wanted}
    return kept | {key: value for key, value in wanted.items() if value is not None}


def warmed(**changes: str | None) -> dict[str, str]:
    """``environment`` in which commands do not import their libraries themselves: see ``warm``.

    Not for commands that are killed or measured.
    """
    given = environment(**changes)
    return given | warm.environment(given.get("PYTHONPATH"))


def run(
    *args: str | Path,
    directory: Path,
    config: Mapping[str, Any] | None = None,
    check: bool = True,
    env: Mapping[str, str | None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the workflow, its commands ``warmed``; all that it says, errors too, is in ``stdout``.

    Raises ``AssertionError`` with that when ``check`` and the exit status is not 0.
    """
    done = subprocess.run(
        command(*args, directory=directory, config=config),
        env=warmed(**(env or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout
    return done


def output_of(*line: str | Path, **options: Any) -> str:
    """What a program says, and then its errors. Raises ``AssertionError`` with that unless it
    succeeds."""
    words = [str(word) for word in line]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def mamushi(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command as whoever installed a wheel does. Raises ``AssertionError`` with what it
    says unless it succeeds, if that is to be checked."""
    done = subprocess.run(
        [sys.executable, "-m", "mamushi", *words],
        cwd=folder,
        env=warmed(PYTHONPATH=str(ROOT / "workflow")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not check, f"{words}\n{done.stdout}{done.stderr}"
    return done
