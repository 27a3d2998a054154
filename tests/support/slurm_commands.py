"""Stand-ins for SLURM's commands, for tests on machines without it."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

import pytest

UUID = "84ff707b-d82d-4a92-9398-bbce015c0e94"
SQUEUE = """
import pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as log:
    print("squeue", *sys.argv[1:], file=log)
if (here / "down").exists():
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
rows = [line.split("\\t") for line in (here / "jobs").read_text().splitlines()]
wanted = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
for row in rows:
    if "--name" in wanted and row[2] != wanted["--name"]:
        continue
    text = wanted["--format"]
    for key, value in zip(("%i", "%T", "%j", "%k", "%Z"), row, strict=True):
        text = text.replace(key, value)
    print(text)
"""
SCANCEL = """
import pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as log:
    print("scancel", *sys.argv[1:], file=log)
rows = (here / "jobs").read_text().splitlines()
kept = [row for row in rows if row.split("\\t")[0] not in sys.argv[1:]]
(here / "jobs").write_text("".join(row + "\\n" for row in kept))
"""
SCONTROL = """
import pathlib
print("Configuration data")
print((pathlib.Path(__file__).parent / "config").read_text())
"""
SACCT = """
import pathlib, sys
here = pathlib.Path(__file__).parent
if not (here / "accounting").exists():
    sys.exit("Slurm accounting storage is disabled")
print((here / "accounting").read_text())
"""


class Commands:
    """squeue, scancel, scontrol and sacct, and what they will say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name, code in {
            "squeue": SQUEUE,
            "scancel": SCANCEL,
            "scontrol": SCONTROL,
            "sacct": SACCT,
        }.items():
            self.replace(name, code)
        self.jobs()
        self.config(MinJobAge="300 sec")

    def replace(self, name: str, code: str) -> None:
        """Give a command another program, in Python."""
        path = self.folder / name
        script = self.folder / f"{name}.py"
        script.write_text(code, encoding="utf-8")
        words = shlex.join([sys.executable, "-S", str(script)])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def jobs(self, *rows: tuple[str, str, str, str, str | Path]) -> None:
        """What is in the queue: id, state, name, comment and folder of each."""
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        # At once, since a thread may be asking.
        (self.folder / "new").write_text(text, encoding="utf-8")
        (self.folder / "new").replace(self.folder / "jobs")

    def config(self, **settings: str) -> None:
        """What the cluster's configuration says."""
        lines = [f"{key:<23} = {value}" for key, value in settings.items()]
        (self.folder / "config").write_text("\n".join(lines), encoding="utf-8")

    def accounting(self, text: str) -> None:
        """What sacct says; until then it is without a database."""
        (self.folder / "accounting").write_text(text, encoding="utf-8")

    def down(self) -> None:
        """From now on squeue reaches no controller."""
        (self.folder / "down").touch()

    def up(self) -> None:
        (self.folder / "down").unlink()

    @property
    def asked(self) -> list[str]:
        """The command lines so far."""
        log = self.folder / "asked"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Put the stand-ins in front of the search path."""
    commands = Commands(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
    return commands


def job(number: int, folder: Path, state: str = "RUNNING") -> tuple[str, str, str, str, Path]:
    """A row of the queue as the plug-in's submission makes it."""
    return (str(number), state, UUID, f"rule_retrain_wildcards_data_model_{number}", folder)
