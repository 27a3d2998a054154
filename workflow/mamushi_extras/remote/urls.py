"""Data at URLs, on the hub, in a bucket or on a web server: a configuration names URLs, a run reads
copies in ``results``. A URL has one copy, of the content that its receipt tells, which commands
that start a run make. Logins are the libraries', and stand in no message or result.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mamushi.errors import UserError
from mamushi.io import digests, paths
from mamushi.io.files import DISK_FULL, read_json, write_json
from mamushi.running.locks import exclusive

REMOTE = re.compile(r"(hf|s3|gs|https?)://")  # How a URL begins that is fetched.
SIGNATURE = re.compile(
    r"x-(amz|goog)-.+|(.*[-_])?(sig|signature|token|secret|password|key|api-?key)|awsaccesskeyid|"
    r"googleaccessid|key-pair-id|policy|expires|s[eprtv]|sk[a-z]+",
    re.IGNORECASE,
)
"""Names in a query that let whoever has the URL in, for a while: no part of what is named."""
HUB = re.compile(r"hf://datasets/([^/@?]+/[^/@?]+)(?:@([^/?]+))?(/[^?]+)")
"""Files of a data set of the hub: its name, its revision and their path."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TIMEOUT = 60  # Seconds in which a web server has to say something.
REVISION = ("ETag", "etag", "generation", "blob_id", "Last-Modified", "size")
"""Keys by which servers tell content from another one."""


def is_remote(value: object) -> bool:
    """Return whether a value is a URL of a kind that is fetched."""
    return isinstance(value, str) and REMOTE.match(value) is not None


def display_url(url: str) -> str:
    """Return a URL for messages: without a name, a password, a query and a fragment."""
    scheme, host, path, _, _ = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path, "", "")) if is_remote(url) else url


def unsigned_url(url: str) -> str:
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
    """Return the path of the receipt of a copy, by its URL as ``unsigned_url`` returns it. It is
    there if the copy is."""
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


def pin_commit(url: str) -> str:
    """Return a URL as ``unsigned_url`` does and, on the hub, with the present commit of its branch.
    Raises ``UserError`` as that, and where the hub does not answer."""
    match = HUB.fullmatch(unsigned_url(url))
    if match is None:
        return unsigned_url(url)
    name, revision, path = match.groups()
    with _explain_errors(url):
        from huggingface_hub import HfApi

        return f"hf://datasets/{name}@{HfApi().dataset_info(name, revision=revision).sha}{path}"


def fetch_copy(url: str, *, refresh: bool = False) -> Path:
    """Return the copy of the file, folder or pattern that a URL names. It is fetched where there is
    none or it was changed and, with ``refresh``, where its original was. Raises ``UserError``, and
    ``ImportError``, which names the package that a kind of URL needs."""
    target, receipt = local_path(unsigned_url(url)), receipt_path(unsigned_url(url))
    if not refresh and _read_revisions(receipt):
        return target
    folder = receipt.parent
    unfinished, lock = folder.with_suffix(".part"), folder.with_suffix(".lock")
    with exclusive(lock, f"fetches {display_url(url)}"), _explain_errors(url):
        system, names = _remote_files(url, target.name)
        revisions = {
            name: " ".join(str(info[key]) for key in REVISION if info.get(key) is not None)
            for path, name in names.items()
            for info in [system.info(path)]
        }
        if _read_revisions(receipt) == revisions:
            return target
        print(f"{display_url(url)}: fetching {len(names):,} files", file=sys.stderr)
        shutil.rmtree(unfinished, ignore_errors=True)
        content = {}
        for path, name in names.items():
            copy = unfinished / name
            if not copy.resolve().is_relative_to(unfinished.resolve()):
                # A bucket may call a file anything.
                raise ValueError(f"{name!r} lies outside of its copy")
            copy.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(path, str(copy))
            origin = display_url(system.unstrip_protocol(path))
            content[name] = {"url": origin, "revision": revisions[name], "sha256": digests.of(copy)}
        write_json(unfinished / receipt.name, {"url": display_url(url), "files": content})
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    return target


def _read_revisions(receipt: Path) -> dict[str, str]:
    """Return what revision each file of a copy has; none without one, or of one that changed."""
    files = read_json(receipt)["files"] if receipt.is_file() else {}
    with contextlib.suppress(UserError):
        if all(digests.of(receipt.with_name(name)) == f["sha256"] for name, f in files.items()):
            return {name: f["revision"] for name, f in files.items()}
    return {}


def urls_of(config: Mapping[str, Any]) -> list[str]:
    """Return the URLs of data in a configuration, perhaps with a signature."""
    return [*map(os.path.expandvars, urls([config.get("datasets"), config.get("models")]))]


def fetch_copies(config: Mapping[str, Any], *, refresh: bool = False) -> None:
    """Fetch the data of a configuration, as it is written. Raises as ``fetch_copy``."""
    for url in urls_of(config):
        fetch_copy(url, refresh=refresh)


def require_copies(config: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for the first URL of a complete configuration without a copy here."""
    for url in urls_of(config):
        if not receipt_path(url).exists():
            do = "mamushi check and mamushi run fetch it"
            raise UserError("is not fetched", where=display_url(url), do=do)


def _remote_files(url: str, last: str) -> tuple[Any, dict[str, str]]:
    """Return the file system of a URL, and the files that it names: their paths there, and their
    names from the ``last`` part of the URL on. Raises ``UserError`` where two have one name."""
    import fsspec

    is_web, options = url.startswith("http"), dict[str, Any]()
    if is_web:
        from aiohttp import ClientTimeout

        timeout = ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        options = {"client_kwargs": {"trust_env": True, "timeout": timeout}}
        # Content as it is, at the URL as it is signed.
        options |= {"encoded": True, "headers": {"Accept-Encoding": "identity"}}
    place = pin_commit(url) if url.startswith("hf:") else url
    system, path = fsspec.url_to_fs(place.rstrip("/"), skip_instance_cache=True, **options)
    if "*" in path and not is_web:
        names = {inner: inner.rpartition("/")[2] for inner in system.glob(path)}
    elif is_web or system.info(path)["type"] == "file":
        return system, {path: last}
    else:
        names = {inner: last + inner[len(path) :] for inner in system.find(path)}
    if not names:
        raise FileNotFoundError
    if len({*names.values()}) < len(names):
        problem = "has several files of one name, in several folders"
        raise UserError(problem, where=display_url(url), do="name them one by one")
    return system, dict(sorted(names.items()))


@contextlib.contextmanager
def _explain_errors(url: str) -> Iterator[None]:
    """Replace a library's exception by a ``UserError`` without the URL, which may hold secrets."""
    try:
        yield
    except (UserError, ImportError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) in DISK_FULL:
            raise
        answer = getattr(error, "response", None) or error.__cause__
        status = getattr(answer, "status_code", getattr(answer, "status", ""))
        problem = f"cannot be fetched ({type(error).__name__} {status}".rstrip() + ")"
        do = "check the path, log in as its library does, or run the same command again"
        raise UserError(problem, where=display_url(url), do=do) from None
