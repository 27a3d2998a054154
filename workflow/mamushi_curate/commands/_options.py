"""Options of several commands: files, here or elsewhere by a URL, of which there is a copy here,
and how cells stand in CSV. Nothing heavy is imported: every help comes here."""

import argparse
import re
from pathlib import Path

from mamushi.io.copies import is_remote, unsigned


def local_path(value: str) -> Path:
    """Return the path that an option names, also by ``file://``."""
    return Path(re.sub("^file:(//)?/", "/", value))


def fetch(value: str) -> tuple[str, Path]:
    """Return a file as configurations name it, by its URL or path from the root on, and where it
    lies here: of a URL a copy of what is there now. Raises ``UserError`` as
    ``fetching.fetch_copy``."""
    if not is_remote(value):
        path = local_path(value).expanduser().absolute()
        return str(path), path
    from mamushi_extras.remote import fetching

    pinned = fetching.pinned(value) if value.startswith("hf:") else value
    return unsigned(pinned), fetching.fetch_copy(pinned, refresh=True).absolute()


def dialect(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add the options that say how cells stand in CSV and TSV, and return them."""
    quote = 'whether `"` holds cells of CSV and TSV together (default: as ranked, else double)'
    separator = "what divides them (default: as ranked, else as the first rows of a .csv say)"
    return [
        parser.add_argument("--quote", choices=("double", "none"), help=quote),
        parser.add_argument("--separator", choices=(",", ";", "|", "tab"), help=separator),
    ]
