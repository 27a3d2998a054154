"""The one kind of error that a user sees: a sentence, never a traceback."""

import contextlib
import difflib
from collections.abc import Iterable, Iterator


class UserError(Exception):
    """A mistake in the input or the configuration.

    Reads as one line, ``where: what; do``: the file, row or key, what is wrong there, and the next
    step for the user.
    """

    def __init__(self, problem: str, *, where: object = None, do: str | None = None) -> None:
        self.problem = problem
        line = problem if where is None else f"{where}: {problem}"
        if do is not None:
            line += f" {do}" if line.endswith("?") else f"; {do}"
        super().__init__(" ".join(line.split()))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in the place of a traceback."""
        return [f"mamushi: {error_line(self)}"]


def other_examples(path: object, of: object) -> UserError:
    """Return the mistake of a table that is not in the order of another, or not of its texts."""
    do = "delete it and run again"
    return UserError(f"its examples are not those of {of}", where=path, do=do)


@contextlib.contextmanager
def located(place: object) -> Iterator[None]:
    """Add a ``place``, a file or its row, as a note to exceptions raised in the block."""
    try:
        yield
    except Exception as error:
        error.add_note(str(place))
        raise


def is_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error is a Ctrl-C, or was raised over one: a class that is being made as it
    comes ends in a ``RuntimeError`` about ``__set_name__``."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def error_line(error: BaseException) -> str:
    """Return an error in one line, behind the files and rows that are noted on it."""
    said = str(error) if isinstance(error, UserError) else " ".join(str(error).split())
    return ": ".join([*reversed(getattr(error, "__notes__", [])), said or type(error).__name__])


def suggestion(wrong: object, names: Iterable[object]) -> str:
    """Return a question for the name that is most like a wrong one, to be put behind a message;
    empty where none is alike."""
    words = {str(name).lower(): name for name in names}
    near = difflib.get_close_matches(str(wrong).lower(), words, 1)
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def choices(wrong: object, names: Iterable[str]) -> str:
    """Return a hint for a message: the name that was probably meant, and all known names."""
    words = sorted(names)
    return f"{suggestion(wrong, words)} known are: {', '.join(words)}".removeprefix("; ").strip()
