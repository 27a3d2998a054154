"""Values of options of several commands."""

from __future__ import annotations

import argparse
import contextlib


def budget_share(text: str) -> float:
    """Return a share of texts above 0 and below 1. Raises ``ArgumentTypeError`` for others."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    problem = f"{text!r} is no share above 0 and below 1; 10% is 0.1, several as in 0.1 0.2"
    raise argparse.ArgumentTypeError(problem)
