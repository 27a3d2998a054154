"""Options of several commands: files, here or elsewhere by a URL, of which there is a copy here,
and which rows of a table are the listed ones. Nothing heavy is imported: every help comes here."""

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
    Raises ``UserError`` as ``fetching.fetch_copy``."""
    value = getattr(args, name)
    path = local_path(value).expanduser().absolute()
    is_id = name == "data" and DATASET_ID.fullmatch(value) and format_of(path) is None
    is_id = is_id and not path.parent.exists()
    if not (is_id or is_remote(value)):
        return path
    from mamushi_extras.remote import fetching

    url = f"hf://datasets/{value}" if is_id else value
    try:
        pinned = fetching.pinned(url) if url.startswith("hf:") else url
    except UserError as error:
        if not is_id:
            raise
        problem = f"no such file here; and of the hub: {error.problem}"
        raise UserError(problem, where=value, do=error.do) from None
    copy = fetching.fetch_copy(pinned, refresh=True)
    setattr(args, name, unsigned(pinned))
    return copy.absolute()


def as_configured(value: str) -> str:
    """Return a file as a configuration names it: a URL as it is, a path from the root on."""
    return value if is_remote(value) else str(local_path(value).expanduser().absolute())


def dialect(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add the options that say how cells stand in CSV and TSV, and return them."""
    quote = 'whether `"` holds cells of CSV and TSV together (default: as ranked, else double)'
    separator = "what divides them (default: as ranked, else as the first rows of a .csv say)"
    return [
        parser.add_argument("--quote", choices=("double", "none"), help=quote),
        parser.add_argument("--separator", choices=(",", ";", "|", "tab"), help=separator),
    ]


def row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which rows of a table are the listed ones."""
    column = "column with the ids (default: the ranked dataset's; of a list of your own `id`)"
    names = parser.add_mutually_exclusive_group()
    names.add_argument("--id", metavar="COLUMN", help=column)
    rows = "the ids are numbers of rows, from 1, in the order of the files"
    names.add_argument("--rows", action="store_true", help=rows)
    text = "column with the texts, which are compared with those that were ranked (default: as "
    parser.add_argument("--text", metavar="COLUMN", help=text + "ranked)")
    dialect(parser)
    changed = "go by the ids also where the texts are others now, or cannot be compared"
    parser.add_argument("--changed-texts", action="store_true", help=changed)
    missing = "go on where the table lacks some of the listed ids"
    parser.add_argument("--missing-ids", action="store_true", help=missing)
