"""Stand-ins for SLURM's commands, for tests on machines without it."""

import os
import shlex
import stat
import sys
from pathlib import Path

import pytest

UUID = "84ff707b-d82d-4a92-9398-bbce015c0e94"
LIMIT = """\
sbatch: error: AssocMaxSubmitJobLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, \
user's size and/or time limits)"""
"""What sbatch of SLURM 22.05 says when an account has no room for another job."""
BEGIN = """
import os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as log:
    print(pathlib.Path(__file__).stem, *sys.argv[1:], file=log)
def put(number, *row):
    part = here / "queue" / f".{number}"
    part.write_text("\\t".join([number, *row]))
    part.replace(here / "queue" / number)
"""
COMMANDS = {
    "squeue": """
if (here / "down").exists():
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
wanted = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
while "--name" in sys.argv and (here / "hangs").exists():
    (here / "hanging").touch()
    time.sleep(0.05)
for path in sorted(here.glob("queue/[0-9]*"), key=lambda path: int(path.name)):
    row = path.read_text().split("\\t")
    if "--states=all" in sys.argv or row[1] in ("RUNNING", "PENDING"):
        text = wanted["--format"]
        for key, value in zip(("%i", "%T", "%j", "%k", "%Z"), row, strict=True):
            text = text.replace(key, value)
        print(text)
""",
    "scancel": """
for number in sys.argv[1:]:
    (here / "queue" / number).unlink()
""",
    "scontrol": """
print("MinJobAge               = 300 sec")
""",
    # A cluster without accounting; Snakemake's plug-in asks for the account whatever it was told.
    "sacct": """
sys.exit("Slurm accounting storage is disabled")
""",
    # Refuses as often as it is told to, then runs a program in place of each job.
    "sbatch": """
for path in here.glob("refusals/*"):
    try:
        path.unlink()
    except FileNotFoundError:
        continue  # another one was refused with it
    sys.exit((here / "refusal").read_text())
option = {name: sys.argv[sys.argv.index(name) + 1] for name in ("--job-name", "--comment", "-D")}
number = str(os.getpid())
row = (option["--job-name"], option["--comment"], option["-D"])
put(number, "RUNNING", *row)
print(number, flush=True)
if os.fork() == 0:
    null = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        os.dup2(null, each)
    os.setsid()
    code = subprocess.call(["sh", here / "work", option["--comment"]], cwd=option["-D"])
    if (here / "queue" / number).exists():
        put(number, "FAILED" if code else "COMPLETED", *row)
""",
}


class Commands:
    """squeue, scancel, scontrol, sacct and sbatch, and what they will say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "queue").mkdir(parents=True)
        for name, code in COMMANDS.items():
            self.replace(name, BEGIN + code)

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
        for path in (self.folder / "queue").iterdir():
            path.unlink()
        for row in rows:
            (self.folder / "queue" / row[0]).write_text("\t".join(map(str, row)))

    @property
    def queue(self) -> list[str]:
        """The states of all jobs."""
        rows = (self.folder / "queue").glob("[0-9]*")
        return [path.read_text(encoding="utf-8").split("\t")[1] for path in rows]

    def work(self, shell: str) -> None:
        """What each job of sbatch does; its first argument is the comment, which names the rule."""
        (self.folder / "work").write_text(shell, encoding="utf-8")

    def refuse(self, times: int, text: str = LIMIT) -> None:
        """Let sbatch refuse the next jobs with this message."""
        (self.folder / "refusal").write_text(text, encoding="utf-8")
        (self.folder / "refusals").mkdir(exist_ok=True)
        for path in (self.folder / "refusals").iterdir():
            path.unlink(missing_ok=True)  # sbatch may have taken it
        for number in range(times):
            (self.folder / "refusals" / str(number)).touch()

    @property
    def refusals(self) -> int:
        """The refusals that are left; one that was asked may not have been refused yet."""
        return len(list((self.folder / "refusals").iterdir()))

    def down(self) -> None:
        """From now on squeue reaches no controller."""
        (self.folder / "down").touch()

    def up(self) -> None:
        (self.folder / "down").unlink()

    def asked(self, command: str) -> list[str]:
        """The command lines so far of one command."""
        log = self.folder / "asked"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [line for line in lines if line.split()[0] == command]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Put the stand-ins in front of the search path."""
    commands = Commands(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
    return commands


def job(number: int, folder: Path, state: str = "RUNNING") -> tuple[str, str, str, str, Path]:
    """A row of the queue as the plug-in's submission makes it."""
    return (str(number), state, UUID, f"rule_retrain_wildcards_data_model_{number}", folder)
