"""The one kind of error that a user sees: a sentence, never a traceback."""

import contextlib
import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

COPY_RECEIPT = ".fetched.json"
"""The file beside a copy of what lies at a URL that says so."""


class UserError(Exception):
    """A mistake in the input or the configuration.

    Reads as one line, ``where: what; do``: the file, row or key, what is wrong there, and the next
    step for the user.
    """

    def __init__(self, problem: str, *, where: object = None, do: str | None = None) -> None:
        self.problem = problem
        self.where = where
        self.do = do
        line = problem if where is None else f"{where}: {problem}"
        if do is not None:
            line += f" {do}" if line.endswith("?") else f"; {do}"
        super().__init__(as_named(" ".join(line.split())))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in the place of a traceback."""
        return [f"mamushi: {told(self)}"]


def other_examples(path: object, of: object) -> UserError:
    """Return the mistake of a table that is not in the order of another, or not of its texts."""
    do = "delete it and run again"
    return UserError(f"its examples are not those of {of}", where=path, do=do)


@contextlib.contextmanager
def located(place: object) -> Iterator[None]:
    """Note on what another library raises in the block where that was: a file, or a row of one."""
    try:
        yield
    except Exception as error:
        error.add_note(str(place))
        raise


def told(error: BaseException) -> str:
    """Return an error in one line, behind the files and rows that are noted on it."""
    said = str(error) if isinstance(error, UserError) else " ".join(str(error).split())
    return ": ".join([*reversed(getattr(error, "__notes__", [])), said or type(error).__name__])


def as_named(text: str) -> str:
    """Return a text in which copies of what lies at URLs are called by the URLs."""
    for folder in {*re.findall(r"results/remote/[0-9a-f]{16}/", text)}:
        with contextlib.suppress(OSError, ValueError):
            receipt = json.loads(Path(folder, COPY_RECEIPT).read_text(encoding="utf-8"))
            names = {receipt["name"]: receipt["url"]}
            names |= {name: file["url"] for name, file in receipt["files"].items()}
            for name in sorted(names, key=len, reverse=True):
                text = text.replace(os.path.abspath(folder + name), names[name])
                text = text.replace(folder + name, names[name])
    return text


def extra(name: str) -> str:
    """Return the command that installs what an extra of the package needs. Its distribution has a
    name of its own: that of the import belongs to another program on the package index."""
    return f"pip install 'mamushi-unlearn[{name}]'"


def closest(wrong: object, names: Iterable[object], least: float = 0.6) -> str:
    """Return a question for the name that is most like a wrong one, by `difflib`'s ratio at
    ``least``; empty without any."""
    words = [name for name in names if isinstance(name, str)]
    near = difflib.get_close_matches(wrong, words, 1, least) if isinstance(wrong, str) else []
    return f"did you mean {near[0]!r}?" if near else ""


def suggestion(wrong: str, names: Iterable[str], least: float = 0.6) -> str:
    """Return a suggestion to be put behind a message, as ``closest``; empty where no name is
    alike."""
    question = closest(wrong, names, least)
    return f"; {question}" if question else ""


def lacks(wrong: object, names: Iterable[object], do: str = "") -> str:
    """Return what there is in the place of a wrong name, and which may be meant; else what to
    ``do``."""
    words = [*names]
    same = [name for name in words if str(name).lower() == str(wrong).lower()]
    question = f"did you mean {same[0]!r}?" if same else closest(wrong, words) or do
    return f"it has {', '.join(map(repr, words))}" + (f"; {question}" if question else "")


def instead(wrong: object, names: Iterable[str]) -> str:
    """Return what a wrong name may have meant, and all names that there are."""
    words = sorted(names)
    return f"{closest(wrong, words)} known are: {', '.join(words)}".strip()
