"""``python -m mamushi_runs``: what is done around a run, one module per subcommand."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from mamushi.errors import UserError

# Each module has `arguments(parser)` and `run(args)`, which returns the exit code.
COMMANDS = {
    "plan": "mamushi_runs.forecast.plan",
    "recover": "mamushi_runs.guard.recover",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand. Returns its exit code, or 2 after a user's mistake told in one line."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="python -m mamushi_runs", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, dotted in COMMANDS.items():
        module = importlib.import_module(dotted)
        about = (module.__doc__ or "").strip()
        sub = commands.add_parser(name, help=about.partition("\n")[0], description=about)
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except UserError as error:
        print(f"mamushi_runs {args.command}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"mamushi_runs {args.command}: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
