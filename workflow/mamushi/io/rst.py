"""Tables in reStructuredText, which captions of the report include, so that a page prints them."""

import re
from collections.abc import Iterable, Sequence

MARKUP = re.compile(r"[^\w\s]|_")
"""What may mean something beside itself: a masked word is no emphasis."""


def list_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title and a row of names; cells are texts as they are, on one line."""
    text = f".. list-table:: {_plain(title)}\n   :header-rows: 1\n\n"
    for row in (head, *rows):
        for i, cell in enumerate(row):
            text += f"   {' ' if i else '*'} - {_plain(cell)}\n"
    return text


def _plain(cell: object) -> str:
    return MARKUP.sub(r"\\\g<0>", " ".join(str(cell).split()))
