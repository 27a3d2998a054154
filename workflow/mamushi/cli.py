"""One thin command per workflow rule: ``python -m mamushi STAGE``.

A stage is a module in ``mamushi/stages`` with ``arguments(parser)`` and ``run(args)``; it imports
what is heavy inside ``run``, so that ``--help`` is immediate. Literals say what it writes and reads
(``WRITES``, ``READS``: see ``claims``), and whether it computes on a GPU (``GPU``: see ``leases``).
One whose result other commands may have computed has ``shared(args)``, a context manager: within
its block none of them runs, and it gives the one that was copied from, or None.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mamushi import __doc__ as overview
from mamushi.artifacts.files import DISK_FULL
from mamushi.errors import UserError
from mamushi.running import claims, leases
from mamushi.running.interruption import Stopped

STAGES = Path(__file__).parent / "stages"


def names() -> list[str]:
    """The stages, by command name: the module's name with dashes for underscores."""
    return sorted(path.stem.replace("_", "-") for path in STAGES.glob("[!_]*.py"))


def settings(text: str) -> dict[str, Any]:
    """Parse ``--settings``: the JSON object of the settings that the stage depends on."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object")
    return value


def execution(parser: argparse.ArgumentParser) -> None:
    """Add ``--execution``: how to run (batch and checkpoint sizes), without effect on results.

    It is no setting, because a change of it must run nothing again; the workflow hands it over in
    the environment, where Snakemake does not look for changes.
    """
    given = os.environ.get("MAMUSHI_EXECUTION")
    parser.add_argument(
        "--execution",
        type=settings,
        default=given,
        required=given is None,
        help="JSON: micro_batch_size, batch_tokens, checkpoint_seconds (or $MAMUSHI_EXECUTION)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one stage. Returns the exit code: 0, 2 after a user's mistake told in one line, or 128
    and the number of the signal that ended it."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="mamushi",
        description=overview,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    stages = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for name in names():
        # Only the stage that was asked for is imported; the others are listed by name.
        if argv[:1] == [name] or not argv or argv[0] not in names():
            module = importlib.import_module(f"mamushi.stages.{name.replace('-', '_')}")
            about = (module.__doc__ or "").strip()
            sub = stages.add_parser(name, help=about.partition("\n")[0], description=about)
            module.arguments(sub)
            sub.set_defaults(module=module)
    args = parser.parse_args(argv)
    try:
        _run(args, argv)
    except (Stopped, KeyboardInterrupt) as end:
        # On a line of its own, where a terminal shows ^C.
        said = str(end) or "interrupted"
        print(f"\nmamushi {args.stage}: {said}", file=sys.stderr, flush=True)
        return end.status if isinstance(end, Stopped) else 128 + signal.SIGINT
    except UserError as error:
        print(f"mamushi {args.stage}: error: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        # Known by name, so that stages without torch need not import it.
        if type(error).__name__ == "OutOfMemoryError":
            print(
                f"mamushi {args.stage}: error: out of GPU memory; lower "
                "execution.micro_batch_size and execution.batch_tokens",
                file=sys.stderr,
            )
            return 2
        if not isinstance(error, OSError):
            raise
        if error.errno in DISK_FULL:
            told = f"no space left ({error}); free some space and run the same command again"
            print(f"mamushi {args.stage}: error: {told}", file=sys.stderr)
            return 2
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            print(f"mamushi {args.stage}: error: {error}", file=sys.stderr)
            return 2
        raise
    return 0


def _run(args: argparse.Namespace, argv: Sequence[str]) -> None:
    """Run the stage of ``args`` alone with its outputs and its GPU, or take over its results."""
    with claims.claimed(args.stage, args, argv) as claim:
        made = claim and claim.taken_over()
        if made:
            said = (
                f"mamushi {args.stage}: the same command has run: took over the results of {made}"
            )
            print(said, file=sys.stderr, flush=True)
            return
        shared = getattr(args.module, "shared", lambda args: contextlib.nullcontext())
        with shared(args) as twin:
            if twin is None:
                # Only now: who waits for another process holds no GPU.
                with leases.leased(args.stage, getattr(args.module, "GPU", False)):
                    args.module.run(args)
        if claim:
            claim.finish()
