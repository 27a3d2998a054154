"""``mamushi COMMAND``, the same as ``python -m mamushi COMMAND``.

A command for people is a file of a folder ``commands`` with ``arguments(parser)`` and
``run(args)``. Any other is a stage of the workflow, which declares its files and settings: see
``running.stage``.
"""

import argparse
import ast
import inspect
import io
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import mamushi
from mamushi.commands import _as_json
from mamushi.errors import UserError, error_line, is_interrupt, suggestion
from mamushi.io.files import DISK_FULL
from mamushi.registry import find_files, import_file
from mamushi.running import launch, locks, machine, stage
from mamushi.running.interruption import Stopped

Plain = argparse.RawDescriptionHelpFormatter


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or what a command for people says; 2 after a
    user's mistake and 1 after any other error, told in one line, or 128 and the number of the
    signal that ended it."""
    began = time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        # A terminal may not know a character, and path names have bytes that are none.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    name = words[0]
    try:
        module = _find_command(words)
        is_stage = isinstance(module, stage.Stage)
        about = inspect.getdoc(module.function if is_stage else module)
        parser = _Parser(f"mamushi {name}", description=about, formatter_class=Plain)
        if is_stage:
            stage.add_arguments(parser, module)
            return _run(module, parser.parse_args(words[1:]), words, began)
        module.arguments(parser)
        with _as_json.alone(args := parser.parse_args(words[1:])):
            status: int = module.run(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads what is printed has seen enough, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (Stopped, KeyboardInterrupt, Exception) as end:
        if not (isinstance(end, Stopped) or is_interrupt(end)):
            return _report(name, end)
        # On a line of its own, where a terminal shows ^C.
        said = end if isinstance(end, Stopped) else "interrupted"
        print(f"\nmamushi {name}: {said}", file=sys.stderr, flush=True)
        return end.status if isinstance(end, Stopped) else 128 + signal.SIGINT


def _report(name: str, error: BaseException) -> int:
    """Print why a command ended, in one line, and return its exit code: 2 for a user's mistake,
    with what to do, else 1, with what the library said, the files and rows at which it did (the
    exception's notes), and where its traceback is."""
    status, said, number = 2, error_line(error), getattr(error, "errno", None)
    # Known by name, so that stages without torch need not import it.
    if type(error).__name__ == "OutOfMemoryError":
        lower = "execution.micro_batch_size and execution.batch_tokens"
        said = f"out of GPU memory; lower {lower}"
    elif number in DISK_FULL:
        said = f"no space left ({error}); free some space and run the same command again"
    elif isinstance(error, OSError) and error.filename is not None:
        said = f"{error.filename}: {str(error.strerror).lower()}"
    elif not isinstance(error, UserError):
        status, said = 1, f"{said} (traceback: {_write_traceback(name, error)})"
    print(f"mamushi {name}: error: {said}", file=sys.stderr)
    return status


def _write_traceback(name: str, error: BaseException) -> str:
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


def commands() -> dict[str, Path]:
    """Return the file of each command for people, by its name."""
    files = find_files("mamushi*/commands/[!_]*.py", "mamushi_*/*/commands/[!_]*.py")
    return {path.stem: path for path in files}


def _find_command(words: Sequence[str]) -> Any:
    """Return the module, or the stage, of the command that was asked for; only that one is
    imported. Ends the process after the help, or after one line about a command that is not
    there."""
    people, stages, name = commands(), stage.stages(), words[0]
    if name in ("-h", "--help", "--version"):
        print(f"mamushi {mamushi.__version__}" if name == "--version" else _list_commands())
        raise SystemExit(0)
    # A command for people may have a stage's name; its rule gives settings, and nobody else.
    of_rule = any(word.partition("=")[0] == "--settings" for word in words)
    if name in stages and (of_rule or name not in people):
        return stages[name]
    if name not in people:
        said = f"no command {name!r}{suggestion(name, [*people, *stages])}"
        print(f"mamushi: error: {said}", file=sys.stderr)
        raise SystemExit(2)
    return import_file(people[name])


def _list_commands() -> str:
    """Return what commands for people do, a line each, and the names of the others."""
    lines = [f"{(mamushi.__doc__ or '').splitlines()[0]}\n"]
    for name, path in commands().items():
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"  {name:<8}  {docstring.splitlines()[0]}")
    stages = f"\nStages of the workflow: {', '.join(stage.stages())}\n"
    return "\n".join([*lines, stages, "Options: mamushi COMMAND --help."])


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        if unknown := re.search(r"unrecognized arguments: (-[\w-]+)", message):
            message += suggestion(unknown[1], self._option_string_actions)
        elif "unrecognized" in message and "--forget" in self._option_string_actions:
            message += "; what has spaces stands in quotes, as in --forget \"topic == 'cars'\""
        message += "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {message}\n")


# A stage of the workflow --------------------------------------------------------------------------


def _run(module: stage.Stage, args: argparse.Namespace, words: Sequence[str], began: float) -> int:
    """Run a stage alone with its outputs and its GPUs, or with none where it is to do without; then
    say what it took since ``began``. Raises ``UserError`` where it would hold one and could not use
    it."""
    job = stage.job_of(module, args)
    if launch.SHARDS in os.environ:
        # The command that started this process has looked after all of this.
        job.run()
        return 0
    card, is_on_gpu = job.arguments.get("model_card"), module.is_on_gpu
    with locks.claim_outputs(job.outputs):
        count = launch.process_count(card) if is_on_gpu else 1
        if is_on_gpu and job.execution.device == "cpu":
            # A scheduler may show one all the same.
            os.environ[machine.VISIBLE], is_on_gpu = "", False
        # Only now: who waits for another process holds no GPU.
        with locks.lease_gpus(is_on_gpu, count):
            if is_on_gpu:
                machine.require_cuda(locks.visible(), card)
            if count > 1 and (status := launch.run(count, words)):
                return status
            if count == 1:
                # Only now: what it reads may have been made anew while it waited.
                job.run()
    machine.report(module.name, began)
    return 0
