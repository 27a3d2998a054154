"""What a command says, for programs: the option ``--json``."""

from __future__ import annotations

import argparse
import json
from typing import Any


def argument(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--json", action="store_true", help="print JSON in the place of text")


def put(value: Any) -> None:
    """Print a value as JSON; paths are text in it."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))
