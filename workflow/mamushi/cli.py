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
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mamushi
from mamushi.errors import UserError, error_line, is_interrupt, suggestion
from mamushi.io.files import DISK_FULL
from mamushi.registry import find_files, import_file
from mamushi.running.interruption import Stopped
from mamushi.running.launch import run_stage
from mamushi.running.stage import stages


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
    except (Stopped, KeyboardInterrupt, Exception) as end:
        if not (isinstance(end, Stopped) or is_interrupt(end)):
            return _report(name, end)
        said, status = (end, end.status) if isinstance(end, Stopped) else ("interrupted", 130)
        # On a line of its own, where a terminal shows ^C.
        print(f"\nmamushi {name}: {said}", file=sys.stderr, flush=True)
        return status


def _run(name: str, words: Sequence[str]) -> int:
    """Run a command; return its exit code. Raises ``UserError`` for one that is not there."""
    # A command for people may have a stage's name; its rule gives settings, and nobody else.
    is_of_rule = any(word.partition("=")[0] == "--settings" for word in words)
    if name in ("-h", "--help"):
        print((mamushi.__doc__ or "").partition("\n")[0], "\n")
        for command, path in commands().items():
            summary = path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
            print(f"  {command:<8}  {summary}")
        print("\nOptions: mamushi COMMAND --help.")
    elif name == "--version":
        print(f"mamushi {mamushi.__version__}")
    elif name in commands() and not is_of_rule:
        return run_command(name, words)
    elif name not in stages():
        raise UserError(f"no command {name!r}{suggestion(name, [*commands(), *stages()])}")
    else:
        return run_stage(stages()[name], words)
    return 0


def _report(name: str, error: BaseException) -> int:
    """Print why a command ended, in one line, and return its exit code: 2 for a user's mistake,
    with what to do, else 1, with what the library said, the files and rows at which it did (the
    exception's notes), and where its traceback is."""
    status, said = 2, error_line(error)
    # Known by name, so that stages without torch need not import it.
    if type(error).__name__ == "OutOfMemoryError":
        said = "out of GPU memory; lower execution.micro_batch_size and execution.batch_tokens"
    elif getattr(error, "errno", None) in DISK_FULL:
        said = f"no space left ({error}); free some space and run the same command again"
    elif isinstance(error, OSError) and error.filename is not None:
        said = f"{error.filename}: {str(error.strerror).lower()}"
    elif not isinstance(error, UserError):
        folder = next(filter(Path.is_dir, (Path("results/logs"), Path(tempfile.gettempdir()))))
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
    """Run a command for people; return its exit code. Raises ``UserError`` for unknown words."""
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
