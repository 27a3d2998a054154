"""Options of several commands: files, here or elsewhere by a URL, of which there is a copy here,
and how cells stand in CSV. Nothing heavy is imported: every help comes here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from mamushi.errors import UserError
from mamushi_extras.remote.urls import fetch_copy, is_remote, pin_commit, unsigned_url


def fetch(value: str) -> tuple[str, Path]:
    """Return a file as configurations name it, by its URL or path from the root on, and where it
    lies here: of a URL a copy of what is there now. Raises ``UserError`` as ``fetch_copy``."""
    if not is_remote(value):
        path = Path(value).expanduser().absolute()
        return str(path), path
    pinned = pin_commit(value) if value.startswith("hf:") else value
    return unsigned_url(pinned), fetch_copy(pinned, refresh=True).absolute()


def check_one(*, required: bool = True, **values: Any) -> str:
    """Return the name of the only option that has a value. Raises ``UserError`` for several, and
    for none unless not ``required``."""
    names = [name for name, value in values.items() if value is not None and value is not False]
    if len(names) > 1 or required > len(names):
        raise UserError(f"give one of {', '.join(f'--{name}' for name in values)}")
    return "".join(names)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Cells:
    """How cells stand in CSV and TSV."""

    quote: Literal["double", "none"] | None = None
    """Whether `"` holds cells of CSV and TSV together; as ranked, else double."""
    separator: Literal[",", ";", "|", "tab"] | None = None
    """What divides them; as ranked, else as the first rows of a .csv say."""
