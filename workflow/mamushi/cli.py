"""One thin command per workflow rule, and some for people: ``python -m mamushi COMMAND``.

A stage of the workflow declares its files and settings: see ``running.stage``. A command for people
has ``arguments(parser)`` and ``run(args)`` instead.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Sequence

from mamushi import __doc__ as overview
from mamushi.artifacts.files import DISK_FULL
from mamushi.errors import UserError
from mamushi.running import claims, leases, stage
from mamushi.running.interruption import Stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or what a command for people says; 2 after a
    user's mistake told in one line, or 128 and the number of the signal that ended it."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="mamushi",
        description=overview,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for name in stage.names():
        # Only the one that was asked for is imported; the others are listed by name.
        if argv[:1] == [name] or not argv or argv[0] not in stage.names():
            module = stage.module(name)
            about = (module.__doc__ or "").strip()
            sub = commands.add_parser(name, help=about.partition("\n")[0], description=about)
            if hasattr(module, "Files"):
                stage.arguments(sub, module)
            else:
                module.arguments(sub)
    args = parser.parse_args(argv)
    try:
        return _run(args)
    except (Stopped, KeyboardInterrupt) as end:
        # On a line of its own, where a terminal shows ^C.
        said = str(end) or "interrupted"
        print(f"\nmamushi {args.stage}: {said}", file=sys.stderr, flush=True)
        return end.status if isinstance(end, Stopped) else 128 + signal.SIGINT
    except UserError as error:
        return _told(args, error)
    except Exception as error:
        # Known by name, so that stages without torch need not import it.
        if type(error).__name__ == "OutOfMemoryError":
            lower = "execution.micro_batch_size and execution.batch_tokens"
            return _told(args, f"out of GPU memory; lower {lower}")
        number = error.errno if isinstance(error, OSError) else None
        if number in DISK_FULL:
            do = "free some space and run the same command again"
            return _told(args, f"no space left ({error}); {do}")
        if number in (errno.EACCES, errno.EPERM, errno.EROFS):
            return _told(args, error)
        raise


def _told(args: argparse.Namespace, mistake: object) -> int:
    print(f"mamushi {args.stage}: error: {mistake}", file=sys.stderr)
    return 2


def _run(args: argparse.Namespace) -> int:
    """Run the command; a stage alone with its outputs and its GPU, unless its results are there."""
    module = stage.module(args.stage)
    if not hasattr(module, "Files"):
        return module.run(args) or 0
    command = stage.given(args.stage, args)
    with claims.claimed(args.stage, command.outputs):
        # Only now: what it reads may be made anew while it waits.
        what = (command.files, command.chosen, job := command.job())
        if command.complete and claims.finished(command.outputs, job.origin):
            for path in command.outputs:
                os.utime(path)
            # Of one that was killed with the last line before it.
            if state := getattr(command.files, "state", None):
                state.unlink(missing_ok=True)
            said = "made from the same already; kept as it is"
            print(f"mamushi {args.stage}: {command.outputs[0]}: {said}", file=sys.stderr)
            return 0
        shared = getattr(module, "shared", lambda *_: contextlib.nullcontext())
        with shared(*what) as twin:
            if twin is None:
                # Only now: who waits for another process holds no GPU.
                with leases.leased(args.stage, getattr(module, "GPU", False)):
                    module.run(*what)
    return 0
