"""of a list by words alone: the stack that ranked it, fitted to all texts, for mamushi score."""

from pathlib import Path


def write(listed: Path, out: Path) -> None:
    """Write the scorer, see ``scorers.write_scorer``."""
    from mamushi_extras.doors.scorers import write_scorer

    write_scorer(listed, out)
