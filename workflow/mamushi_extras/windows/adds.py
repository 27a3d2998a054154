"""What this room adds to the core: long documents are ranked by their windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.sources import unlabelled
from mamushi_extras.windows.settings import WindowsKey, check_windows

if TYPE_CHECKING:
    from mamushi.data.raw import Raw
    from mamushi.selection.pool import Pool
    from mamushi_curate.commands._removal_list import ListedTexts


def applies(settings: Mapping[str, Any]) -> bool:
    """Tell whether the documents of a dataset are divided."""
    return bool(settings.get("windows"))


def divide_rows(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Divide the documents of a table into windows."""
    from mamushi_extras.windows.windows import divide

    return divide(raw, settings["windows"], not unlabelled(settings))


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


def dataset_keys() -> type[Any]:
    """Return the further keys of a dataset."""
    return WindowsKey


config_checks = check_windows
