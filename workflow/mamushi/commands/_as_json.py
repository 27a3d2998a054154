"""What a command says, for programs: the option ``--json``."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any, TextIO

_outputs: list[TextIO] = []
"""Where the document goes, of a command that prints one."""


def argument(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--json", action="store_true", help="print JSON in the place of text")


@contextlib.contextmanager
def alone(args: argparse.Namespace) -> Iterator[None]:
    """Within the block, print on standard error what a command says to people where it is asked for
    JSON, so that nothing stands beside that."""
    if getattr(args, "json", False) is not True:
        yield
        return
    _outputs.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _outputs.pop()


def put(value: Any) -> None:
    """Print a value as JSON, where a command was asked for that; paths are text in it."""
    for out in _outputs[-1:]:
        print(json.dumps(value, indent=2, ensure_ascii=False, default=str), file=out, flush=True)
