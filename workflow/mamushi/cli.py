"""Commands for people by who uses them, and one for each rule of the workflow under ``stage``.

``mamushi COMMAND`` and ``python -m mamushi COMMAND`` are the same. A stage of the workflow declares
its files and settings: see ``running.stage``; ``mamushi NAME`` without ``stage`` finds it too, as
its rule does. A command for people is a file of ``ROOMS``: see ``mamushi.commands``.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import errno
import importlib
import inspect
import io
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import mamushi
from mamushi.commands import _as_json
from mamushi.errors import UserError, suggestion, told
from mamushi.io.files import DISK_FULL, REFUSED
from mamushi.running import launch, leases, locks, machine, stage
from mamushi.running.interruption import Stopped

PACKAGES = Path(__file__).parents[1]
ROOMS = (
    *("mamushi.commands", "mamushi_curate.commands", "mamushi_runs.commands"),
    *(
        ".".join(folder.relative_to(PACKAGES).parts)
        for folder in sorted(PACKAGES.glob("mamushi_extras/*/commands"))
    ),
)
"""The other packages stand beside this one and are reached by their folders alone: one knows
Snakemake, the other has the rooms of extras."""
GROUPS = {
    "start": "from a table to a list",
    "decide": "what the list is worth",
    "act": "what becomes of it",
    "check": "whether all is well",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or what a command for people says; 2 after a
    user's mistake and 1 after any other error, told in one line, or 128 and the number of the
    signal that ended it."""
    began = time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        # A terminal may not know a character, and path names have bytes that are none.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["help"], ["version"]):
        words = [*words[1:], f"--{words[0]}"]
    name, module, options = _find_command(words)
    parser = _parser(name, module)
    args = parser.parse_args(options)
    try:
        if isinstance(module, stage.Stage):
            return _run(module, args, words, began)
        return _answer(module, args)
    except (Stopped, KeyboardInterrupt) as end:
        # On a line of its own, where a terminal shows ^C.
        message = str(end) or "interrupted"
        print(f"\nmamushi {name}: {message}", file=sys.stderr, flush=True)
        return end.status if isinstance(end, Stopped) else 128 + signal.SIGINT
    except Exception as error:
        return _report(name, error)


def _answer(module: ModuleType, args: argparse.Namespace) -> int:
    """Run a command for people and return its exit code. Raises ``UserError`` also for a path where
    the system refuses what was asked for."""
    try:
        with _as_json.alone(args):
            status: int = module.run(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads what is printed has seen enough, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in REFUSED or error.filename is None:
            raise
        raise UserError(str(error.strerror).lower(), where=error.filename) from None


def _report(name: str, error: Exception) -> int:
    """Print why a command ended, in one line, and return its exit code: 2 for a user's mistake,
    with what to do, else 1, with what the library said, the files and rows at which it did (the
    exception's notes), and where its traceback is."""
    number, mistake, kind = getattr(error, "errno", None), "", "failed"
    # Known by name, so that stages without torch need not import it.
    if type(error).__name__ == "OutOfMemoryError":
        lower = "execution.micro_batch_size and execution.batch_tokens"
        mistake = f"out of GPU memory; lower {lower}"
    elif number in DISK_FULL:
        mistake = f"no space left ({error}); free some space and run the same command again"
    elif isinstance(error, UserError) or number in (errno.EACCES, errno.EPERM, errno.EROFS):
        mistake, kind = told(error), "error"
    status = 2 if mistake else 1
    if not mistake:
        mistake, kind = f"{told(error)} (traceback: {_write_traceback(name, error)})", "error"
    print(f"mamushi {name}: {kind}: {mistake}", file=sys.stderr)
    return status


def _write_traceback(name: str, error: Exception) -> str:
    """Return the file in which the traceback of an error is, beside the logs of a run."""
    folder = Path("results/logs") if Path("results").is_dir() else Path(tempfile.gettempdir())
    path = folder / f"{name}-{os.getpid()}.traceback.txt"
    try:
        folder.mkdir(exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError as problem:
        return f"cannot be written, {problem}"
    return str(path)


# Which command ------------------------------------------------------------------------------------


def commands() -> dict[str, tuple[str, str]]:
    """Return group and summary of each command for people, whose file is read and not imported."""
    by_name = {}
    for room in ROOMS:
        for path in _folder(room).glob("[!_]*.py"):
            text = path.read_text(encoding="utf-8")
            (group,) = re.findall(r'^GROUP = "(\w+)"$', text, re.MULTILINE)
            summary = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            by_name[path.stem.replace("_", "-")] = group, summary
    return dict(sorted(by_name.items()))


def _folder(room: str) -> Path:
    return Path(__file__).parents[1].joinpath(*room.split("."))


def _find_command(words: list[str]) -> tuple[str, ModuleType | stage.Stage, list[str]]:
    """Return name, module and options of the command that was asked for; only that one is imported.

    Ends the process after the help, or after one line about a command that does not exist.
    """
    if words[:1] == ["stage"]:
        if words[1:2] and words[1] in stage.stages():
            return words[1], stage.stages()[words[1]], words[2:]
        _list_stages(words[1:])
    if words:
        file = words[0].replace("-", "_")
        rooms = [room for room in ROOMS if (_folder(room) / f"{file}.py").is_file()]
        # A command for people may have a stage's name; its rule gives settings, and nobody else.
        of_rule = any(word.partition("=")[0] == "--settings" for word in words)
        if words[0] in stage.stages() and (of_rule or not rooms):
            return words[0], stage.stages()[words[0]], words[1:]
        if rooms and file[0].isalpha():
            return words[0], importlib.import_module(f"{rooms[0]}.{file}"), words[1:]
    _list_commands(words)


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        if unknown := re.search(r"unrecognized arguments: (-[\w-]+)", message):
            message += suggestion(unknown[1], self._option_string_actions)
        elif "unrecognized" in message and "--forget" in self._option_string_actions:
            message += "; what has spaces stands in quotes, as in --forget \"topic == 'cars'\""
        message += "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {message}\n")


def _parser(name: str, module: ModuleType | stage.Stage) -> argparse.ArgumentParser:
    described = module.function if isinstance(module, stage.Stage) else module
    text = inspect.cleandoc(described.__doc__ or "")
    parser = _Parser(
        prog=f"mamushi {name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if isinstance(module, stage.Stage):
        stage.add_arguments(parser, module)
    else:
        module.arguments(parser)
    return parser


def _list_commands(words: list[str]) -> NoReturn:
    """Print all commands, or end with one line about a command that does not exist."""
    by_name = commands()
    width = max(map(len, by_name))
    lines = [(mamushi.__doc__ or "").partition("\n")[0]]
    for group, purpose in GROUPS.items():
        lines += ["", f"{group}: {purpose}"]
        lines += [
            f"  {name:<{width}}  {summary}"
            for name, (of, summary) in by_name.items()
            if of == group
        ]
    lines += ["", "Stages of the workflow: mamushi stage --help. Options: mamushi COMMAND --help."]
    _end("mamushi", "command", lines, words, [*by_name, *stage.stages()])


def _list_stages(words: list[str]) -> NoReturn:
    """Print all stages, or end with one line about a stage that does not exist."""
    width = max(map(len, stage.stages()))
    lines = ["The stages of the workflow, which its rules call."]
    lines += [
        f"  {name:<{width}}  {entry.summary}" for name, entry in sorted(stage.stages().items())
    ]
    _end("mamushi stage", "stage", lines, words, [*stage.stages()])


def _end(prog: str, kind: str, lines: list[str], words: list[str], names: list[str]) -> NoReturn:
    """End with the lines where the words ask for help, else with what is wrong in them."""
    parser = _Parser(
        prog=prog,
        usage=f"{prog} {kind.upper()} ...",
        description="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(kind, nargs="?", metavar=kind.upper(), help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"mamushi {mamushi.__version__}")
    name = getattr(parser.parse_args(words[:1]), kind)
    if name is None:
        parser.error(f"no {kind.upper()}")
    parser.error(f"no {kind} {name!r}{suggestion(name, names)}")


# A stage of the workflow --------------------------------------------------------------------------


def _run(module: stage.Stage, args: argparse.Namespace, words: Sequence[str], began: float) -> int:
    """Run a stage alone with its outputs and its GPU; then say what it took since ``began``."""
    job = stage.job_of(module, args)
    if launch.SHARDS in os.environ:
        # The command that started this process has looked after all of this.
        job.run()
        return 0
    with locks.claimed(job.outputs):
        card = job.arguments.get("model_card")
        count = launch.process_count(card) if module.is_on_gpu else 1
        # Only now: who waits for another process holds no GPU.
        with _device(count, job):
            if count > 1 and (status := launch.run(count, words)):
                return status
            if count == 1:
                # Only now: what it reads may have been made anew while it waited.
                job.run()
    machine.report(module.name, began)
    return 0


@contextlib.contextmanager
def _device(count: int, job: stage.Job) -> Iterator[None]:
    """Let a stage that computes on GPUs see ``count`` of them, or none where it is to do without.
    Raises ``UserError`` where it would hold one and could not use it."""
    is_on_gpu = job.stage.is_on_gpu and job.execution.device == "auto"
    with leases.leased(is_on_gpu, count) as lease:
        if job.stage.is_on_gpu and not is_on_gpu:
            # A scheduler may show one all the same.
            os.environ[machine.VISIBLE] = ""
        if is_on_gpu and (gpus := lease or machine.scheduled()):
            machine.require_cuda(gpus, job.arguments.get("model_card"))
        yield
