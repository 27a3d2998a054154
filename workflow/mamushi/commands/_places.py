"""Files that options name: here, or elsewhere by a URL, of which there is a copy here."""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.io.tabular import is_remote

FILE_OPTIONS = ("like", "unlike", "terms", "embeddings", "label")
"""Options that name a file beside DATA."""


def fetched_place(args: argparse.Namespace, name: str) -> Path:
    """Return the file that an option names, of a URL its copy as the original is now; the option
    then has the URL as configurations name it. Raises ``UserError`` as ``remote.fetch_copy``."""
    if not is_remote(value := getattr(args, name)):
        return Path(value).expanduser().absolute()
    from mamushi.running import remote

    url = remote.pinned(value) if value.startswith("hf:") else value
    copy = remote.fetch_copy(url, refresh=True, table=name in ("data", "like", "unlike"))
    setattr(args, name, remote.unsigned(url))
    return copy.absolute()


def fetch_beside(args: argparse.Namespace) -> None:
    """Fetch the files beside DATA that URLs name, as ``fetched_place`` does."""
    for name in FILE_OPTIONS:
        if is_remote(getattr(args, name)):
            fetched_place(args, name)


def local_path(value: str) -> Path:
    """Return a file that ``fetched_place`` has returned, by how configurations name it."""
    if not is_remote(value):
        return Path(value).expanduser().absolute()
    from mamushi.running import remote

    return remote.copy_path(value)


def as_configured(value: str) -> str:
    """Return a file as a configuration names it: a URL as it is, a path from the root on."""
    return value if is_remote(value) else str(Path(value).expanduser().absolute())


def display(value: str) -> str:
    """Return a file for messages, of a URL what may be read by everybody."""
    if not is_remote(value):
        return str(Path(value))
    from mamushi.running import remote

    return remote.display_url(value)
