"""What this room adds to the core: long documents are ranked by their windows."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from mamushi.config.complete import names_in_use
from mamushi.config.kinds import Added, Count, Section, key
from mamushi.config.sources import is_unlabelled


class Windows(Section):
    """Parts of long documents, each of which is embedded, scored and trained on as a text. Choose
    them no longer than `embedding.max_length` tokens. Null divides none."""

    words: Count = key(100, "Most words in a window.")
    action: Literal["remove", "cut"] = key(
        "remove", "What a list does: takes documents out, or cuts windows out of them."
    )


def reading_steps(settings: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Divide the documents of a table into windows."""

    def divide(raw: Any, settings: Mapping[str, Any]) -> Any:
        from mamushi_extras.windows.windows import divide

        return divide(raw, settings["windows"], not is_unlabelled(settings))

    return {"divide": divide} if settings.get("windows") else {}


def pool_step(pool: Any, metadata: Mapping[str, Any], column: Callable[[str], Any]) -> Any:
    """Fit and score windows that have the labels of their documents by these."""
    windows = metadata.get("windows")
    if not windows or not windows["labelled"]:
        return pool
    from mamushi_extras.windows.windows import add_document_steps

    return add_document_steps(pool, windows["action"] == "remove")


def removal_list(removal: Any) -> Any:
    """Take a list of windows for what is cut, or for the documents that go."""
    if not (divided := (removal.source or {}).get("windows")):
        return removal
    from mamushi_curate.removal import WHOLE
    from mamushi_extras.windows.windows import WindowSpan, document_of, span_of

    ids = defaultdict[str, dict[WindowSpan, str]](dict)
    for window, ranked in removal.ids.items():
        ids[document_of(window)][span_of(window)] = ranked[WHOLE]
    if divided["action"] == "cut":
        return replace(removal, ids=ids, cuts_windows=True)
    copies: dict[str, list[str]] = {document_of(name): [] for name in removal.copies}
    for row in removal.duplicates():
        original, document = document_of(row["kept_id"] or ""), document_of(row["id"])
        goes = original in copies if divided["labelled"] else row["kept_id"] in removal.copies
        if goes and document not in copies:
            copies[original].append(document)
            ids[document][span_of(row["id"])] = row["text_sha256"]
    copies = {name: [*dict.fromkeys(several)] for name, several in copies.items()}
    return replace(removal, ids=ids, copies=copies)


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each dataset whose ``windows`` contradict its other settings."""
    for name in names_in_use(full, "datasets"):
        dataset, at = full["datasets"][name], f"datasets.{name}.windows"
        if (windows := dataset["windows"]) is None:
            continue
        if dataset["kind"] != "table":
            yield f"{at}: the documents of a table are divided; leave windows out"
        if dataset.get("assistant_only_loss"):
            yield f"{at}: turns by themselves have no template; leave assistant_only_loss out"
        if dataset.get("answers") and windows["action"] == "remove" and not is_unlabelled(dataset):
            yield f"{at}.action: 'remove' is not allowed with answers, which are of windows; cut"


config = Added({"datasets.windows": (Windows | None, None)}, check)
