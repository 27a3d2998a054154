"""``python -m mamushi_runs COMMAND``: what is done around a run, and not in one of its jobs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from mamushi.errors import UserError

COMMANDS = {"plan": "mamushi_runs.plan"}
"""By name, a module with ``arguments(parser)`` and ``run(args)``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or 2 after a user's mistake told in one line."""
    parser = argparse.ArgumentParser(prog="python -m mamushi_runs", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module_name in COMMANDS.items():
        module = importlib.import_module(module_name)
        about = (module.__doc__ or "").strip()
        sub = commands.add_parser(name, help=about.partition("\n")[0], description=about)
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        args.run(args)
    except UserError as error:
        print(f"mamushi_runs {args.command}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
