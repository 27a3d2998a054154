"""Files that options name: here, or elsewhere by a URL, of which there is a copy here."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mamushi.errors import UserError
from mamushi.io.copies import is_remote, unsigned
from mamushi.io.tabular import format_of

FILE_OPTIONS = ("like", "unlike", "terms", "embeddings", "label")
"""Options that name a file beside DATA."""
DATASET_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*(\?.*)?")
"""A data set of the hub, with its configuration and split."""


def local_path(value: str) -> Path:
    """Return the path that an option names, also by ``file://``."""
    return Path(re.sub("^file:(//)?/", "/", value))


def fetched_place(args: argparse.Namespace, name: str) -> Path:
    """Return the file that an option names, of a URL, or of DATA as the id of a data set of the
    hub, its copy as the original is now; the option then has the URL as configurations name it.
    Raises ``UserError`` as ``remote.fetch_copy``."""
    value = getattr(args, name)
    path = local_path(value).expanduser().absolute()
    is_id = name == "data" and DATASET_ID.fullmatch(value) and format_of(path) is None
    is_id = is_id and not path.parent.exists()
    if not (is_id or is_remote(value)):
        return path
    from mamushi.data import remote

    url = f"hf://datasets/{value}" if is_id else value
    try:
        pinned = remote.pinned(url) if url.startswith("hf:") else url
    except UserError as error:
        if not is_id:
            raise
        problem = f"no such file here; and of the hub: {error.problem}"
        raise UserError(problem, where=value, do=error.do) from None
    copy = remote.fetch_copy(pinned, refresh=True)
    setattr(args, name, unsigned(pinned))
    return copy.absolute()


def fetch_beside(args: argparse.Namespace) -> None:
    """Fetch the files beside DATA that URLs name, as ``fetched_place`` does."""
    for name in FILE_OPTIONS:
        if is_remote(getattr(args, name)):
            fetched_place(args, name)


def as_configured(value: str) -> str:
    """Return a file as a configuration names it: a URL as it is, a path from the root on."""
    return value if is_remote(value) else str(local_path(value).expanduser().absolute())
