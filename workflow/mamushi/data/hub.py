"""A data set on the hub: its files come into the hub's cache, where they stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

from mamushi.artifacts import tabular
from mamushi.errors import UserError

ID = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(?:/(?P<split>[\w.-]+))?")
NUMBERED = re.compile(r"-\d{5}-of-\d{5}$")
"""How the hub numbers the shards of a split."""


def is_id(given: str) -> bool:
    """Whether this can name a data set on the hub, with or without a split behind it."""
    return ID.fullmatch(given) is not None and tabular.format_of(Path(given)) is None


def table(given: str) -> Path:
    """Return a split of a data set as a path that ``tabular.find`` reads, which names the commit.

    Raises ``UserError`` when the hub cannot be reached or has no such data set, for one without
    files that can be read, and for several splits of which none is named.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    found = ID.fullmatch(given)
    assert found is not None
    patterns = [f"*{end}{packed}" for end in tabular.FORMATS for packed in ("", *tabular.PACKED)]
    try:
        folder = Path(
            snapshot_download(found["name"], repo_type="dataset", allow_patterns=patterns)
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError):
        raise UserError(
            "no such file, and no data set that the hub gives", where=given, do="check the path"
        ) from None
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and tabular.format_of(path) is not None:
            name = path.name[: path.name.index(".")]
            place = path.relative_to(folder).parent / NUMBERED.sub("", name)
            splits.setdefault(place.as_posix().removeprefix("data/"), []).append(path)
    if not splits:
        raise UserError("no table in this data set", where=given, do=tabular.KNOWN)
    split = found["split"] or next(iter(splits))
    if split not in splits or (found["split"] is None and len(splits) > 1):
        raise UserError(
            f"has the splits {', '.join(splits)}",
            where=given,
            do=f"name one, such as {found['name']}/{next(iter(splits))}",
        )
    files = splits[split]
    if len(files) == 1:
        return files[0]
    stem = NUMBERED.sub("", files[0].name[: files[0].name.index(".")])
    return files[0].parent / f"{stem}-*{''.join(files[0].suffixes)}"
