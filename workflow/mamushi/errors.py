"""The one kind of error that a user sees: a sentence, never a traceback."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in the input or the configuration.

    Reads as one line, ``where: what; do``: the file, row or key, what is wrong there, and the next
    step for the user.
    """

    def __init__(self, what: str, *, where: object = None, do: str | None = None) -> None:
        self.what = what
        self.where = where
        self.do = do
        line = what if where is None else f"{where}: {what}"
        if do is not None:
            line += f" {do}" if line.endswith("?") else f"; {do}"
        super().__init__(" ".join(line.split()))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in the place of a traceback."""
        return [f"mamushi: {self}"]


def extra(name: str) -> str:
    """Return the command that installs what an extra of the package needs. Its distribution has a
    name of its own: that of the import belongs to another program on the package index."""
    return f"pip install 'mamushi-unlearn[{name}]'"


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """Return a suggestion to be put behind a message; empty where nothing known is alike."""
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
