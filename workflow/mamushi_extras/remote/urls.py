"""What lies at a URL, by the names of its copy in ``results``: no server is asked here.

A configuration names URLs, a run reads copies. A URL has one copy, of the content that its receipt
tells; ``fetching`` makes it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mamushi.errors import UserError
from mamushi.io import paths

REMOTE = re.compile(r"(hf|s3|gs|https?)://")
"""How a URL begins that is fetched."""
SIGNATURE = re.compile(
    r"x-(amz|goog)-.+|(.*[-_])?(sig|signature|token|secret|password|key|api-?key)|awsaccesskeyid|"
    r"googleaccessid|key-pair-id|policy|expires|s[eprtv]|sk[a-z]+",
    re.IGNORECASE,
)
"""Names in a query that let whoever has the URL in, for a while: no part of what is named."""
HUB = re.compile(r"hf://datasets/([^/@?]+/[^/@?]+)(?:@([^/?]+))?(/[^?]+)")
"""Files of a data set of the hub: its name, its revision and their path."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_remote(value: object) -> bool:
    """Return whether a value is a URL of a kind that is fetched."""
    return isinstance(value, str) and REMOTE.match(value) is not None


def display_url(url: str) -> str:
    """Return a URL for messages: without a name, a password, a query and a fragment."""
    scheme, host, path, _, _ = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path, "", "")) if is_remote(url) else url


def unsigned(url: str) -> str:
    """Return a URL as results name it: without a signature. Raises ``UserError`` for one with a
    password, one that is not encrypted, and one of no files of the hub."""
    address, problem = urlsplit(url), ""
    if address.scheme == "hf" and not HUB.fullmatch(url):
        problem, do = "names no files of the hub", "write hf://datasets/ORG/NAME/PATH"
    elif "@" in address.netloc and address.scheme != "hf":
        problem, do = "has a name or a password in it", "leave it out; ~/.netrc may have it"
    elif address.scheme == "http" and address.hostname not in LOOPBACK:
        problem, do = "is not encrypted", "give https://"
    if problem:
        raise UserError(problem, where=display_url(url), do=do)
    if address.scheme == "hf":
        return url
    query = [pair for pair in parse_qsl(address.query, True) if not SIGNATURE.fullmatch(pair[0])]
    return urlunsplit((*address[:3], urlencode(query), ""))


def receipt_path(url: str) -> Path:
    """Return the receipt of the copy of a URL, which ``unsigned`` has returned: it is there if the
    copy is."""
    return Path(paths.FETCHED.format(place=hashlib.sha256(url.encode()).hexdigest()[:16]))


def local_path(value: str) -> Path:
    """Return where what a configuration names lies here: of a URL its copy, which keeps the name,
    and of a pattern every file of it."""
    if not is_remote(value):
        return Path(value)
    last = urlsplit(value).path.rstrip("/").rpartition("/")[2]
    return receipt_path(value).parent / (re.sub(r"[{}$]", "_", last) or "data")


def localize(values: Any) -> Any:
    """Return values of a configuration with the copies of URLs in their place."""
    if isinstance(values, Mapping):
        return {key: localize(value) for key, value in values.items()}
    return str(local_path(values)) if is_remote(values) else values


def urls(values: Any) -> Iterator[str]:
    """Iterate over the URLs in a part of a configuration."""
    if isinstance(values, Mapping | list):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from urls(value)
    elif is_remote(values):
        yield values
