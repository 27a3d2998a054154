"""Tables in reStructuredText: texts come out as they are, and on one line."""

from docutils.core import publish_doctree
from docutils.nodes import entry, title

from mamushi.io.names import list_table

TEXTS = [
    "f*** you",
    "*a* `b` |c| d_ <e> `f <g>`_",
    "::",
    ".. note:: x",
    "a\\b",
    "two\n\nlines",
    "",
    "- a",
]


def test_texts_are_read_as_they_were_written() -> None:
    text = list_table("*Title*", ["no", "said"], enumerate(TEXTS))
    tree = publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 2})
    (named,) = tree.findall(title)
    assert named.astext() == "*Title*"
    cells = [cell.astext() for cell in tree.findall(entry)]
    assert cells[:2] == ["no", "said"]
    assert cells[3::2] == [" ".join(one.split()) for one in TEXTS]
