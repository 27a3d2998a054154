"""Logs as stages leave them."""

from pathlib import Path

from mamushi.running.usage import Usage, spell


def write(path: Path, wall: float, cpu: float = 1.0, memory_mb: float = 100.0) -> None:
    """The log of a job that took this: seconds, and MB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"1/2 steps\n{spell('retrain', Usage(wall, cpu, memory_mb))}\n"
    path.write_text(text, encoding="utf-8")
