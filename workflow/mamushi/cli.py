"""``mamushi COMMAND``, the same as ``python -m mamushi COMMAND``.

A command for people is a file of a folder ``commands``, whose docstring is its help. The signature
of its function ``run`` is its options; it returns the exit code, and what ``--json`` prints. Any
other is a stage of the workflow, which declares its files and settings: see ``running.stage``.
"""

import contextlib
import io
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mamushi
from mamushi.errors import UserError, error_line, is_interrupt, suggestion
from mamushi.io.files import DISK_FULL
from mamushi.registry import find_files, import_file
from mamushi.running import launch, locks, machine
from mamushi.running.interruption import Stopped
from mamushi.running.stage import Stage, parse_job, stages


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or what a command for people says; 2 after a
    user's mistake and 1 after any other error, told in one line, or 128 and the number of the
    signal that ended it."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal may not know a character, and path names have bytes that are none.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    name, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        status = _run(name, words)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads what is printed has seen enough, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Stopped as end:
        print(f"\nmamushi {name}: {end}", file=sys.stderr, flush=True)
        return end.status
    except (KeyboardInterrupt, Exception) as error:
        if not is_interrupt(error):
            return _report(name, error)
        # On a line of its own, where a terminal shows ^C.
        print(f"\nmamushi {name}: interrupted", file=sys.stderr, flush=True)
        return 128 + signal.SIGINT


def _run(name: str, words: Sequence[str]) -> int:
    """Run a command; return its exit code. Raises ``UserError`` for one that is not there."""
    # A command for people may have a stage's name; its rule gives settings, and nobody else.
    is_of_rule = any(word.partition("=")[0] == "--settings" for word in words)
    if name in ("-h", "--help"):
        print(_list_commands())
    elif name == "--version":
        print(f"mamushi {mamushi.__version__}")
    elif name in commands() and not is_of_rule:
        return run_command(name, words)
    elif name not in stages():
        raise UserError(f"no command {name!r}{suggestion(name, [*commands(), *stages()])}")
    else:
        return _run_stage(stages()[name], words)
    return 0


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
        logs = Path("results/logs")
        folder = logs if logs.is_dir() else Path(tempfile.gettempdir())
        path = folder / f"{name}-{os.getpid()}.traceback.txt"
        with contextlib.suppress(OSError):
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        status, said = 1, f"{said} (traceback: {path})"
    print(f"mamushi {name}: error: {said}", file=sys.stderr)
    return status


def commands() -> dict[str, Path]:
    """Return the file of each command for people, by its name."""
    files = find_files("mamushi_*/commands/[!_]*.py", "mamushi_*/*/commands/[!_]*.py")
    return {path.stem: path for path in files}


def run_command(name: str, words: Sequence[str]) -> int:
    """Run a command for people; return its exit code. Raises ``UserError`` for words that it does
    not take."""
    from cyclopts import App, CycloptsError, Parameter

    module, as_json = import_file(commands()[name]), "--json" in words
    usual: dict[str, Any] = {"allow_repeating": True, "consume_multiple": 1, "negative": ()}
    app = App(
        f"mamushi {name}",
        help=re.sub(r"(?<!\n)\n(?!\n)", " ", module.__doc__ or ""),
        help_epilogue="--json: Print JSON in the place of text.",
        help_format="plaintext",
        help_formatter="default" if sys.stdout.isatty() else "plain",
        group_commands="Help",
        version_flags=(),
        default_parameter=Parameter(**usual, show_default=lambda value: value or None),
        exit_on_error=False,
        print_error=False,
        verbose=False,
    )
    app.default(module.run)
    try:
        run, values, _ = app.parse_args([word for word in words if word != "--json"])
    except CycloptsError as error:
        raise UserError(str(error).rstrip("."), do=f"see mamushi {name} --help") from None
    # Nothing stands beside a document.
    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
        status, document = run(*values.args, **values.kwargs) or (0, None)
    if as_json:
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    return status


def _list_commands() -> str:
    """Return what commands for people do, a line each."""
    lines = [f"{(mamushi.__doc__ or '').splitlines()[0]}\n"]
    for name, path in commands().items():
        summary = path.read_text(encoding="utf-8").splitlines()[0].strip('"')
        lines.append(f"  {name:<8}  {summary}")
    return "\n".join([*lines, "\nOptions: mamushi COMMAND --help."])


def _run_stage(stage: Stage, words: Sequence[str]) -> int:
    """Run a stage alone with its outputs and its GPUs, or with none where it is to do without; then
    say what it took. Raises ``UserError`` where it would hold one and could not use it."""
    began, job = time.monotonic(), parse_job(stage, words)
    if launch.SHARDS in os.environ:
        # The command that started this process has looked after all of this.
        job.run()
        return 0
    card, status = job.arguments.get("model_card"), 0
    count = launch.process_count(card) if stage.is_on_gpu else 1
    is_on_gpu = stage.is_on_gpu and job.execution.device != "cpu"
    # Who waits for another process holds no GPU.
    with locks.claim_outputs(job.outputs), locks.lease_gpus(is_on_gpu, count):
        if is_on_gpu:
            machine.require_cuda(locks.visible(), card)
        if count > 1:
            status = launch.run(count, [stage.name, *words])
        else:
            # Only now: what it reads may have been made anew while it waited.
            job.run()
    machine.report(stage.name, began)
    return status
