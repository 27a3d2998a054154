"""What this room adds to the core: long documents are ranked by their windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from mamushi.config.complete import used
from mamushi.config.kinds import Added, Count, Section, key
from mamushi.config.sources import unlabelled

if TYPE_CHECKING:
    from mamushi.data.raw import Raw
    from mamushi.selection.pool import Pool
    from mamushi_curate.listed import ListedTexts


class Windows(Section):
    """Parts into which long documents are divided, each of which is embedded, scored and trained on
    as a text of its own. Choose them no longer than `embedding.max_length` tokens. Null divides
    none."""

    words: Count = key(100, "Most words in a window.")
    action: Literal["remove", "cut"] = key(
        "remove", "What a list does: takes documents out, or cuts windows out of them."
    )


def rows(settings: Mapping[str, Any]) -> dict[str, Callable[..., Raw]]:
    """Divide the documents of a table into windows."""

    def divide(raw: Raw, settings: Mapping[str, Any]) -> Raw:
        from mamushi_extras.windows.windows import divide

        return divide(raw, settings["windows"], not unlabelled(settings))

    return {"divide": divide} if settings.get("windows") else {}


def pool_step(pool: Pool, metadata: Mapping[str, Any], column: Callable[[str], Any]) -> Pool:
    """Fit and score windows that have the labels of their documents by these."""
    windows = metadata.get("windows")
    if not windows or not windows["labelled"]:
        return pool
    from mamushi_extras.windows.windows import with_document_steps

    return with_document_steps(pool, windows["action"] == "remove")


def removal_list(listed: ListedTexts) -> ListedTexts:
    """Take a list of windows for what is cut, or for the documents that go."""
    if not (listed.rows or {}).get("windows"):
        return listed
    from mamushi_extras.windows.lists import as_window_list

    return as_window_list(listed)


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield what cannot be divided, or not in this way."""
    for name in used(full, "datasets"):
        dataset, at = full["datasets"][name], f"datasets.{name}.windows"
        if (windows := dataset["windows"]) is None:
            continue
        if dataset["kind"] != "table":
            yield f"{at}: the documents of a table are divided; leave windows out"
        if dataset.get("assistant_only_loss"):
            yield f"{at}: turns by themselves have no template; leave assistant_only_loss out"
        if dataset.get("answers") and windows["action"] == "remove" and not unlabelled(dataset):
            yield f"{at}.action: 'remove' is not allowed with answers, which are of windows; cut"


config = Added({"datasets.windows": (Windows | None, None)}, check)
