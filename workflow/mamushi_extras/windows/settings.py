"""What this room adds to the configuration: windows of a dataset's documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from mamushi.config.checks import datasets_used
from mamushi.config.kinds import Count, Section
from mamushi.config.sources import unlabelled


class Windows(Section):
    """Parts into which long documents are divided, each of which is embedded, scored and trained on
    as a text of its own. Choose them no longer than `embedding.max_length` tokens. Null divides
    none."""

    words: Count = 100  #: Most words in a window.
    #: What ends a paragraph, and so a window: a blank line, any line, or null for nothing.
    paragraphs: Literal["blank_line", "line"] | None = "blank_line"
    #: What a list does: remove takes documents out, cut takes windows out of documents.
    action: Literal["remove", "cut"] = "remove"


class WindowsKey(Section):
    """The key of a dataset."""

    windows: Windows | None = None


def check_windows(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield what cannot be divided, or not in this way."""
    for name in datasets_used(full):
        dataset, at = full["datasets"][name], f"datasets.{name}.windows"
        if (windows := dataset["windows"]) is None:
            continue
        if dataset["kind"] != "table":
            yield f"{at}: the documents of a table are divided; leave windows out"
        if dataset.get("assistant_only_loss"):
            yield f"{at}: turns by themselves have no template; leave assistant_only_loss out"
        if dataset.get("answers") and windows["action"] == "remove" and not unlabelled(dataset):
            yield f"{at}.action: 'remove' is not allowed with answers, which are of windows; cut"
