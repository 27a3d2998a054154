"""What happens at the begin and the end of a run, in the process that the user started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def begin(workflow: Any, config: Mapping[str, Any]) -> None:
    """Before the first job. Raises ``UserError`` where the run must not start."""


def end(workflow: Any, config: Mapping[str, Any], *, succeeded: bool) -> None:
    """After the last job."""
