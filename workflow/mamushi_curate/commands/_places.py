"""Files that options name: here, or elsewhere by a URL, of which there is a copy here."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from urllib.parse import urlencode

from mamushi.errors import UserError
from mamushi.io.copies import HUB, is_remote, unsigned
from mamushi.io.tabular import format_of

FILE_OPTIONS = ("like", "unlike", "terms", "embeddings", "label")
"""Options that name a file beside DATA."""
DATASET_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add what is asked of a data set of the hub, and return these options."""
    return [
        parser.add_argument("--split", metavar="NAME", help="of a data set of the hub: its split"),
        parser.add_argument("--config", metavar="NAME", help="of it: its configuration (subset)"),
    ]


def local_path(value: str) -> Path:
    """Return the path that an option names, also by ``file://``."""
    return Path(re.sub("^file:(//)?/", "/", value))


def fetched_place(args: argparse.Namespace, name: str) -> Path:
    """Return the file that an option names, of a URL its copy as the original is now; the option
    then has the URL as configurations name it. Raises ``UserError`` as ``remote.fetch_copy``."""
    value = getattr(args, name)
    url = _of_hub(args) if name == "data" else value
    if not is_remote(url):
        return local_path(value).expanduser().absolute()
    from mamushi.data import remote

    try:
        pinned = remote.pinned(url) if url.startswith("hf:") else url
    except UserError as error:
        if is_remote(value):
            raise
        problem = f"no such file here; and of the hub: {error.problem}"
        raise UserError(problem, where=value, do=error.do) from None
    copy = remote.fetch_copy(pinned, refresh=True)
    setattr(args, name, unsigned(pinned))
    return copy.absolute()


def _of_hub(args: argparse.Namespace) -> str:
    """Return DATA, of a data set of the hub its URL, also where its id alone is given and nothing
    of that name is here. Raises ``UserError`` for a split of what has none."""
    value, path = str(args.data), Path(args.data).expanduser()
    chosen = {name: getattr(args, name) for name in ("config", "split") if getattr(args, name)}
    is_id = DATASET_ID.fullmatch(value) and not path.exists() and format_of(path) is None
    if is_id and (chosen or not path.parent.exists()):
        value = f"hf://datasets/{value}"
    if chosen:
        match = HUB.fullmatch(value)
        if not match or match["path"]:
            where = f"--{next(iter(chosen))}"
            raise UserError("is of a data set of the hub alone", where=where, do="leave it out")
        value = f"{value.partition('?')[0]}?{urlencode(chosen)}"
    return value


def fetch_beside(args: argparse.Namespace) -> None:
    """Fetch the files beside DATA that URLs name, as ``fetched_place`` does."""
    for name in FILE_OPTIONS:
        if is_remote(getattr(args, name)):
            fetched_place(args, name)


def as_configured(value: str) -> str:
    """Return a file as a configuration names it: a URL as it is, a path from the root on."""
    return value if is_remote(value) else str(local_path(value).expanduser().absolute())
