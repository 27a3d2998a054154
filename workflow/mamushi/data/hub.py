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
    """Return whether this can name a data set on the hub, with or without a split behind it."""
    return ID.fullmatch(given) is not None and tabular.format_of(Path(given)) is None


def table(given: str) -> Path:
    """Fetch a data set and return one split, as a path that ``tabular.find`` reads.

    Raises ``UserError`` when the hub cannot be reached or has no such data set, for one without
    files that can be read, and for several splits of which none is named.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    found = ID.fullmatch(given)
    assert found is not None
    name, split = found["name"], found["split"]
    patterns = [f"*{end}{packed}" for end in tabular.FORMATS for packed in ("", *tabular.PACKED)]
    try:
        folder = Path(snapshot_download(name, repo_type="dataset", allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError):
        what = "no such file, and no data set that the hub gives"
        raise UserError(what, where=given, do="check the path") from None
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and tabular.format_of(path) is not None:
            place = path.relative_to(folder).parent / _stem(path)
            splits.setdefault(place.as_posix().removeprefix("data/"), []).append(path)
    if not splits:
        raise UserError("no table in this data set", where=given, do=tabular.KNOWN)
    first = next(iter(splits))
    if (split or first) not in splits or (split is None and len(splits) > 1):
        do = f"name one, such as {name}/{first}"
        raise UserError(f"has the splits {', '.join(splits)}", where=given, do=do)
    path, *others = splits[split or first]
    return path.parent / f"{_stem(path)}-*{''.join(path.suffixes)}" if others else path


def _stem(path: Path) -> str:
    """Return a file's name without its endings and without its number as a shard."""
    return NUMBERED.sub("", path.name.partition(".")[0])
